//! What only some cards have, asked of one that hasn't: each refusal says so, and nothing else changes.

use host_driver::{Access, Device, PostError, TaggedSend};
use posthorn_tests::cards::both;

#[test]
fn gates_without_the_optional_capabilities_refuse_clearly() {
    both("tiny", 1, 91, |host| {
        let device = Device::open(host.transport()).expect("a card");
        let limits = device.limits();
        assert!(!limits.unsignaled_sends);
        assert_eq!(limits.send_segments, 1);
        let pd = device.alloc_pd().expect("a domain");
        let endpoint = pd.endpoint().open().expect("an endpoint");
        let (pair, _) = endpoint.open_pair(1).expect("a pair");
        let send = TaggedSend {
            pair,
            context: 0,
            match_bits: 0,
            immediate: 0,
        };
        let (_, buffer) = pd.reg_mr(16, Access::Read).expect("a region");
        let shared = buffer.share();
        let unsignaled = endpoint.post_unsignaled_send(1, &send, shared.clone());
        let unsignaled = unsignaled.err().map(|refused| refused.error);
        assert_eq!(unsignaled, Some(PostError::Unsupported));
        let two = [shared.slice(..8), shared.slice(8..)];
        let gathered = endpoint.post_gather_send(1, &send, &two);
        assert_eq!(gathered, Err(PostError::Unsupported));
        assert_eq!(endpoint.completion_queue().outstanding(), 0);
    });
}
