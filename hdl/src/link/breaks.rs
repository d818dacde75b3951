//! Contracts of the link's blocks that a test breaks, to show that it notices.

use super::acknowledge::Acknowledge;
use super::faults::{Faults, party};
use super::firmware_in::FirmwareIn;
use super::firmware_out::{self, FirmwareOut};
use super::frame_gate::FrameGate;
use super::frame_mux::FrameMux;
use super::framer::Framer;
use super::gather::Gather;
use super::loopback::Loopback;
use super::receive::Receive;
use super::responder::Responder;
use super::screen::Screen;
use crate::envelope::send_queues;
use crate::verilog::Break;
use abi::mgmt::FRAMES_IN;
use abi::status::Status;

/// Of the receiver, its screen included.
pub fn receive() -> Vec<Break> {
    let bad_frame_ends = "fire & s_axis.tlast & !(good & !for_firmware)";
    vec![
        // The trailer isn't looked at.
        Break::new("crc_not_checked").force::<Screen>("crc_good", "true"),
        // The length field isn't compared with the frame.
        Break::new("length_not_checked").force::<Screen>("length_good", "true"),
        // A bad frame's payload isn't taken back.
        Break::new("payload_kept")
            .force_if::<Screen>("write.d", "write.q", bad_frame_ends)
            .force_if::<Screen>("committed.d", "write.q", bad_frame_ends),
        // The frame after the next one passes as well.
        Break::new("sequence_off_by_one").force_if::<Receive>("in_turn.d", "true", "ahead == 1"),
        // The cookie isn't compared.
        Break::new("cookie_not_checked").force::<Receive>("same_cookie", "true"),
        // Frames of a failed pair pass.
        Break::new("failed_pairs_pass").force::<Receive>("refused", "false"),
        // A frame for the firmware goes the way of the others too.
        Break::new("firmware_frames_go_on").force::<Screen>("frames.input.valid", "good"),
        // A peer that was heard of once is heard of for ever.
        Break::new("heard_for_ever").force::<Receive>("heard.write.data", "true"),
        // What comes again is no sign of life.
        Break::new("repetition_unheard").force_if::<Receive>(
            "heard.write.enable",
            "false",
            "behind.q & is_request",
        ),
        // A request that is missing isn't reported.
        Break::new("gap_unreported").force::<Receive>("tells.d", "false"),
        // Each request behind a missing one reports it.
        Break::new("gap_reported_by_all").force::<Receive>("tells.d", "true"),
        // A request that is missing is only reported once, however often those behind it come.
        Break::new("gap_reported_once").force::<Receive>("tells.d", "!next.gap.any()"),
        // A request that has come before is dropped, and that is all.
        Break::new("duplicate_unanswered").force::<Receive>("answers", "false"),
        // A close is taken for a failure, and a failure for a close.
        Break::new("close_is_a_failure").force::<Receive>("closes", "false"),
        Break::new("failure_is_a_close").force::<Receive>("fault_closed.q", "true"),
        // An answer arrives although no get waits for it.
        Break::new("answer_unclaimed").force_if::<Receive>(
            "state.d",
            "State::Arrive",
            "(state.q == State::Claim) & claim.ready",
        ),
        // Where its bytes go isn't kept.
        Break::new("place_forgotten").force::<Receive>("place.d", "place.q"),
        // A get that comes again isn't answered again, or is taken for a further request.
        Break::new("get_answered_once").force::<Receive>("repeats", "false"),
        Break::new("get_again_is_new").force::<Receive>("again.d", "false"),
        // What an answer that nobody awaits says of this side's sends isn't heard.
        Break::new("late_answer_unheard").force_if::<Receive>(
            "progress_pending.d",
            "false",
            "(state.q == State::Claim) & !claimed.data.taken",
        ),
        // A get may want more than a frame carries, and a refusal may have bytes.
        Break::new("gets_too_long").force_if::<Screen>("length_good", "true", "is_get"),
        Break::new("refusals_with_bytes").force_if::<Screen>("carries", "true", "is_answer"),
        // The version of a frame for the firmware isn't compared.
        Break::new("version_not_checked").force_if::<Screen>(
            "known",
            "head.flags == 0",
            "for_firmware",
        ),
    ]
}

/// Of the place through which every failure of a pair goes.
pub fn faults() -> Vec<Break> {
    const { assert!(party::DELIVERY == 2, "whose bit is 4") };
    vec![
        // A pair fails as often as it is asked for.
        Break::new("fails_again").force_if::<Faults>(
            "pair.sound",
            "true",
            "state.q == State::Look",
        ),
        // A pair whose peer is silent fails without an event.
        Break::new("silence_unseen").force_if::<Faults>(
            "is_news",
            "false",
            &format!("held.q.status == {}", Status::PeerFailed.code()),
        ),
        // A close by the peer isn't told apart from its silence.
        Break::new("close_untold").force::<Faults>("by_peer.q", "false"),
        Break::new("silence_taken_for_close").force::<Faults>("by_peer.q", "true"),
        // The pair's sends end while answers of its gets may still be on their way to their buffers.
        Break::new("done_at_once").force::<Faults>("delivery_done", "true"),
        // `Delivery` doesn't get the fault.
        Break::new("delivery_forgotten").force_if::<Faults>(
            "told.d",
            "4",
            "state.q == State::Look",
        ),
    ]
}

/// Of what reads payloads.
pub fn gather() -> Vec<Break> {
    vec![
        // An error of a payload's read is not looked at.
        Break::new("read_error_ignored").force::<Gather>("read_data_error", "false"),
        // A buffer is read whatever Regions says.
        Break::new("reads_what_is_refused").force::<Gather>("may_read", "true"),
        // A fence isn't told that a read has ended,
        Break::new("access_never_ends").force::<Gather>("access_ends", "false"),
        // is told so when its words are still coming,
        Break::new("access_ends_early").force::<Gather>("access_ends", "goes_on & asks & may_read"),
        // or of a segment that may not be read.
        Break::new("refused_access_ends").force::<Gather>(
            "access_ends",
            "passes & (under_way.output.data.allowed | under_way.output.data.refused)",
        ),
        // What is asked for isn't said to be a message's,
        Break::new("asks_for_no_message").force::<Gather>("asked.tagged", "false"),
        // or it is said to be another pair's.
        Break::new("asks_for_pair_0").force::<Gather>("asked.pair", "0"),
        // A job that is refused becomes a message.
        Break::new("refused_goes_out").force::<Gather>("sound", "true"),
        // Jobs come although the longest payload has no room.
        Break::new("room_not_kept").force::<Gather>("used", "0"),
        // The place of a payload that is being sent is given away.
        Break::new("place_given_away").force::<Gather>("open.q", "false"),
        // What has been given of a pair that is dropped goes out.
        Break::new("drops_nothing").force::<Gather>("drops_sends", "false"),
        // A buffer is asked for although the payload is inline.
        Break::new("inline_is_asked_for").force::<Gather>("length", "job.data.length"),
        // An inline payload isn't cut at its length.
        Break::new("inline_not_cut").force::<Gather>("inline_payload", "inline_bytes"),
        // The first word of an inline payload goes out twice.
        Break::new("inline_word_twice").force::<Gather>("second_word.q", "false"),
        // A message that has left, or never will, passes for one that is to come.
        Break::new("gone_still_gathered")
            .force::<Gather>("was_gathered.d", "has_one | (pair[0].q == gathered_pair)"),
        // Only the message on offer is dropped.
        Break::new("offer_stays").force_if::<Gather>("passed_over", "false", "message.ready"),
        // Of the second segment, the first byte alone is asked for.
        Break::new("second_segment_unbounded").force_if::<Gather>(
            "asked.buffer.length",
            "1",
            "at.q == 1",
        ),
        // A segment is asked for as if it were of the first one's region.
        Break::new("first_key_for_all")
            .force::<Gather>("asked.buffer.key", "to_ask.output.data.key"),
        // A segment that may not be read is forgotten when the next one comes.
        Break::new("refusal_forgotten").force::<Gather>("refused_before.d", "false"),
        // A segment that couldn't be read is forgotten when the next one comes.
        Break::new("failure_forgotten").force::<Gather>("failed_before.d", "false"),
        // The second segment changes places with the third.
        Break::new("segments_swapped")
            .force::<Gather>("second", "following.third")
            .force::<Gather>("third", "following.second"),
        // An empty segment ends its job.
        Break::new("ends_at_empty").force_if::<Gather>("more", "false", "is_empty"),
        // Bytes are joined to those before as if there were one less.
        Break::new("joined_at_wrong_shift").force_if::<Gather>(
            "shifted",
            "bit_cast::<128, 64>(read_data.data) << (bit_cast::<7, 3>(carried_bytes.q - 1) << 3)",
            "carried_bytes.q.any()",
        ),
        // Each segment begins a word.
        Break::new("segments_not_joined").force_if::<Gather>("is_full", "true", "last_comes"),
        // What the last word holds beyond the payload's last but one is lost.
        Break::new("spill_lost").force::<Gather>("spills.d", "false"),
        // What a failed gather has carried gets into the next payload.
        Break::new("carries_into_the_next").force_if::<Gather>("carried_bytes.d", "1", "ends"),
        // A get's buffer is asked for as if it were to be read,
        Break::new("get_is_a_send").force::<Gather>("to_ask.output.data.get", "false"),
        // is read,
        Break::new("get_is_read").force::<Gather>("to_read.output.data.get", "false"),
        // or has room reserved for what isn't read.
        Break::new("get_reserves").force_if::<Gather>("words", "(length + 7) >> 3", "job.data.get"),
        // A peer's remote key is taken for one of this host,
        Break::new("answer_is_of_this_host").force::<Gather>("asked.remote", "false"),
        // its pair's number for another,
        Break::new("answer_is_for_another").force::<Gather>("asked.pair", "0"),
        // and memory that it may write for such as it may read.
        Break::new("answer_needs_no_right").force_if::<Gather>(
            "asked.buffer.rights",
            "1",
            "asked.remote",
        ),
        // An answer is read where its offset is.
        Break::new("read_at_the_offset").force_if::<Gather>(
            "wanted.address",
            "0",
            "to_read.output.data.answer",
        ),
        // The answers of a pair that has ended go out.
        Break::new("answers_not_dropped").force::<Gather>("answers_dropped.valid", "false"),
        // A peer that may not read gets no answer,
        Break::new("refusal_unsaid").force::<Gather>("of_answer", "false"),
        // or one that doesn't say so,
        Break::new("refusal_is_an_answer").force::<Gather>("leaving.refused", "false"),
        // or that promises bytes.
        Break::new("refusal_has_bytes")
            .force::<Gather>("leaving.length", "envelopes.output.data.message.length"),
        // What an answer is read from is asked for although it is refused.
        Break::new("refused_is_asked_for").force::<Gather>("job.data.refused", "false"),
        // The next answer at a place is refused with the one before.
        Break::new("refusal_kept").force_if::<Gather>("missing[3].d", "true", "missing[3].q"),
        // A read that fails counts as a refusal.
        Break::new("failure_is_a_refusal").force::<Gather>("answer_denied", "refused | failed"),
        // A refusal is counted for another pair.
        Break::new("denies_another").force::<Gather>("answered_pair", "pair[0].q"),
        // A job is answered with its first segment.
        Break::new("answered_with_the_first").force::<Gather>("under_way.output.data.last", "true"),
    ]
}

/// Of what answers gets.
pub fn responder() -> Vec<Break> {
    vec![
        // An answer is given while a send may still come.
        Break::new("gives_at_once").force::<Responder>("settled", "true"),
        // Answers leave no room for sends.
        Break::new("sends_starve").force::<Responder>("rested", "false"),
        // An answer is given without room.
        Break::new("answers_without_room").force_if::<Responder>(
            "gives",
            "settled & may_give",
            "gate.q == Gate::Hold",
        ),
        // Gets that come go before turns.
        Break::new("turns_wait_for_gets").force::<Responder>("admitted_last.d", "false"),
        // All gets of a pair have one place.
        Break::new("one_place").force::<Responder>("asked_place", "0"),
        // One that comes while others of its pair wait takes all their places.
        Break::new("forgets_what_waits").force_if::<Responder>(
            "changed.waits",
            "asked_bit",
            "step.q == Step::Admit",
        ),
        // A pair whose gets aren't all answered loses its turn.
        Break::new("one_turn_only").force_if::<Responder>("push", "false", "step.q == Step::Pick"),
        // A pair stands in the queue with each of its gets.
        Break::new("a_turn_for_each_get").force_if::<Responder>(
            "push",
            "known",
            "step.q == Step::Admit",
        ),
        // A peer that is shut out reads on.
        Break::new("shut_out_reads").force::<Responder>("denied.d", "false"),
        // A get without bytes is asked about.
        Break::new("asks_about_nothing").force_if::<Responder>(
            "asks.d",
            "true",
            "step.q == Step::Read",
        ),
        // What waits of a pair that ends is kept,
        Break::new("old_gets_kept").force_if::<Responder>(
            "changed.waits",
            "held.waits",
            "step.q == Step::Forget",
        ),
        // and what is to be given next.
        Break::new("old_offer_kept").force::<Responder>("withdraws", "false"),
        // The end of a pair doesn't wait for what Gather reads for it,
        Break::new("ends_undecided").force::<Responder>("drained", "true"),
        // and Gather sends it.
        Break::new("drops_nothing").force::<Responder>("dropped.valid", "false"),
        // A refusal isn't told.
        Break::new("refusal_uncounted").force::<Responder>("is_denied", "false"),
    ]
}

/// Of what makes frames.
pub fn framer() -> Vec<Break> {
    vec![
        // Control frames all have number 0.
        Break::new("control_not_numbered").force_if::<Framer>(
            "carried.d.sequence",
            "0",
            "!of_message.q",
        ),
        // A message that is sent again has a number of its own.
        Break::new("repeat_numbered_anew").force::<Framer>("framed.q.again", "false"),
        // The next number follows that of the last message that was sent again, whatever has been sent before.
        Break::new("repeats_count").force_if::<Framer>("lead", "0", "of_message.q"),
        // A control frame doesn't say that a request is missing.
        Break::new("gap_unsaid").force::<Framer>("control_frame.data.misses", "false"),
        // Messages and control frames have one number between them.
        Break::new("one_number_for_all").force::<Framer>("of_message.q", "false"),
        // The stream pauses behind the header.
        Break::new("pause_in_frame").force_if::<Framer>(
            "out_valid.d",
            "false",
            "advance & (word.q == 9)",
        ),
        // A pair is set or cleared only when the wire has taken the frame that is being sent.
        Break::new("control_waits_for_the_wire")
            .force::<Framer>("serves", "control.valid & (state.q == State::Idle)"),
        // A get is a put,
        Break::new("get_is_a_put").force_if::<Framer>("frame_type.d", "0x11", "message.data.get"),
        // or has as much payload as it wants.
        Break::new("get_has_payload").force_if::<Framer>(
            "framed.d.length",
            "message.data.length",
            "message.data.get",
        ),
        // It doesn't say how much that is.
        Break::new("get_wants_nothing").force_if::<Framer>(
            "framed.d.context",
            "0",
            "message.data.get",
        ),
        // An answer takes a number of its pair's requests,
        Break::new("answer_counts").force_if::<Framer>(
            "counted.message",
            "follows",
            "of_message.q & framed.q.answer",
        ),
        // or has one.
        Break::new("answer_numbered_anew").force_if::<Framer>(
            "number_now",
            "next.message",
            "framed.q.answer",
        ),
        // A refusal isn't told from no bytes.
        Break::new("refusal_unsaid").force::<Framer>("message.data.refused", "false"),
        // An answer tells the peer which key it has used.
        Break::new("answer_has_a_key").force_if::<Framer>(
            "framed.d.match_bits",
            "message.data.match_bits",
            "message.data.answer",
        ),
        // The answer of a pair that has failed goes out.
        Break::new("failed_pairs_answer").force::<Framer>("lookup_failed", "false"),
        // A message of a pair that has failed doesn't, and takes no number.
        Break::new("failure_stops_all").force_if::<Framer>("goes_out", "false", "lookup_failed"),
        // Control frames go out as long as there are any.
        Break::new("messages_starve").force::<Framer>("control_last.q", "false"),
        // Messages go first.
        Break::new("control_frames_wait").force::<Framer>("control_last.q", "true"),
    ]
}

/// Of what tells the peers.
pub fn acknowledge() -> Vec<Break> {
    let update = "step.q == Step::Update";
    let turn = "step.q == Step::Turn";
    vec![
        // A freed envelope counts twice.
        Break::new("credit_returned_twice").force::<Acknowledge>("one_freed", "held.freed + 2"),
        // A pair is queued again although it waits already.
        Break::new("queued_twice").force_if::<Acknowledge>("push", "true", update),
        // A pair is not queued again once it has been.
        Break::new("turn_kept").force_if::<Acknowledge>("sinks.write_data.queued", "true", turn),
        // A frame of a pair that is set or cleared stays on offer.
        Break::new("frame_outlives_pair").force::<Acknowledge>("outlived", "false"),
        // A peer that is to be told of a missing request is only answered.
        Break::new("gap_forgotten").force::<Acknowledge>("mark.data.misses", "false"),
        // A pair that is to ask acknowledges only.
        Break::new("ask_forgotten").force::<Acknowledge>("mark.data.ask", "false"),
        // A pair that is to answer and has nothing new to say says nothing.
        Break::new("answer_forgotten").force_if::<Acknowledge>(
            "sinks.write_data.answers",
            "false",
            "step.q == Step::Mark",
        ),
        // The window of what was refused stays where it is when a message is accepted.
        Break::new("window_not_shifted").force::<Acknowledge>("window", "held.refused"),
        // An orderly end is announced as a failure.
        // A pair that is closed says that it has failed, and one that has failed that it is closed.
        Break::new("close_told_as_failure").force::<Acknowledge>("closes", "false"),
        Break::new("failure_told_as_close").force::<Acknowledge>("closes", "true"),
        Break::new("closing_announced").force::<Acknowledge>("announces", "true"),
        // A pair that has failed doesn't look so to whoever answers its peer's gets,
        Break::new("failure_unseen").force::<Acknowledge>("numbers_now.failed", "false"),
        // nor does one that is sound after it had failed.
        Break::new("failed_for_ever").force_if::<Acknowledge>(
            "numbers_now.failed",
            "true",
            "held.failed",
        ),
        // What a frame of the pair's own messages has carried is said once more.
        Break::new("says_it_again").force_if::<Acknowledge>("nothing_new", "false", turn),
        // A frame on offer goes although one of the pair's own messages has just carried the same.
        Break::new("offer_not_replaced").force::<Acknowledge>("replaced", "false"),
        // What the last incarnation of a pair has said counts for the next.
        Break::new("remembers_what_was_said").force::<Acknowledge>("forgets_said", "false"),
        // Numbers go alone although a message of the pair waits for its frame.
        Break::new("waits_for_no_message").force::<Acknowledge>("waits", "false"),
        // Only a message of the pair itself is waited for, and a busy wire carries a frame for each number.
        Break::new("waits_for_its_own_only")
            .force::<Acknowledge>("waits", "gathered & !many_credits & !waited_enough"),
        // Numbers wait for a message's frame however long it takes.
        Break::new("waits_for_ever").force::<Acknowledge>("waited_enough", "false"),
        // What acknowledgements wait for doesn't change.
        Break::new("delay_kept").force_if::<Acknowledge>(
            "setup.acknowledge_delay",
            "held.delay",
            "is_times",
        ),
        Break::new("waiting_credits_kept").force_if::<Acknowledge>(
            "setup.acknowledge_credits",
            "bit_cast::<8, 7>(held.waiting_credits)",
            "is_times",
        ),
        // A pair whose times change is another.
        Break::new("times_begin_anew").force::<Acknowledge>("is_times", "false"),
        // Credits that the peer needs wait, too.
        Break::new("credits_wait").force::<Acknowledge>("many_credits", "false"),
    ]
}

/// Of two links back to back: what the rules of the whole link notice.
pub fn link_bench() -> Vec<Break> {
    let mut breaks = Break::named(
        &receive(),
        &["crc_not_checked", "payload_kept", "sequence_off_by_one"],
    );
    breaks.extend(Break::named(&faults(), &["delivery_forgotten"]));
    breaks.extend(Break::named(&gather(), &["read_error_ignored"]));
    breaks.extend(Break::named(
        &framer(),
        &["control_not_numbered", "pause_in_frame"],
    ));
    breaks.extend(Break::named(
        &acknowledge(),
        &["credit_returned_twice", "turn_kept", "window_not_shifted"],
    ));
    breaks.extend(send_queues::breaks::link_bench());
    breaks
}

/// Of two links between which credits are few and are lost.
pub fn thirsty_link_bench() -> Vec<Break> {
    let mut breaks = Break::named(&acknowledge(), &["ask_forgotten"]);
    breaks.extend(send_queues::breaks::thirsty_link_bench());
    breaks
}

/// All that a test of two links breaks.
pub fn any_link_bench() -> Vec<Break> {
    let mut breaks = link_bench();
    breaks.extend(thirsty_link_bench());
    breaks
}

/// Of the switch for the card's frames to itself.
pub fn loopback() -> Vec<Break> {
    let word_moves = "receive.tvalid & receive.tready";
    vec![
        // The first byte of an address isn't compared.
        Break::new("half_an_address").force_if::<Loopback>(
            "round",
            "known.q & ((bit_cast::<48, 64>(card.tdata) >> 8) == (mac.q >> 8))",
            "route.q == Route::Open",
        ),
        // An own frame never gives way to the wire.
        Break::new("wire_starves").force::<Loopback>("card_last.d", "false"),
        // The source that has the receiver is chosen again with each word.
        Break::new("frames_mix")
            .force_if::<Loopback>("owner.d", "Owner::Nobody", word_moves)
            .force_if::<Loopback>("card_last.d", "from_card", word_moves),
        // A frame that the MAC found bad passes for a good one.
        Break::new("bad_frames_pass").force::<Loopback>("receive_tuser", "false"),
    ]
}

/// Of the firmware's way out.
pub fn firmware_out() -> Vec<Break> {
    const { assert!(firmware_out::WORDS == 14, "the index of the trailer") };
    vec![
        // A write changes the frame that is being sent.
        Break::new("frame_changes").force::<FirmwareOut>("writes", "write"),
        // The CRC goes on from the frame before.
        Break::new("crc_goes_on").force_if::<FirmwareOut>(
            "register.d",
            "register.q",
            "fire & (index.q == 14)",
        ),
        // The frame may be written before its last word is taken.
        Break::new("ready_too_soon").force_if::<FirmwareOut>("ready", "true", "index.q == 14"),
    ]
}

/// Of the firmware's way in.
pub fn firmware_in() -> Vec<Break> {
    const { assert!(FRAMES_IN == 4, "as many as may wait") };
    let full_again = "frees & !keeps & (waiting.q == 4)";
    vec![
        // A frame without room takes the place of the oldest.
        Break::new("overwrites")
            .force_if::<FirmwareIn>("keeps", "true", "accept & full")
            .force_if::<FirmwareIn>("frees", "true", "accept & full"),
        // A frame that is dropped isn't counted.
        Break::new("drop_not_counted").force::<FirmwareIn>("count_frames_dropped", "false"),
        // Every frame is kept.
        Break::new("all_accepted").force_if::<FirmwareIn>(
            "keeps",
            "!full",
            "word.valid & (word_index == 8)",
        ),
        // A frame is gone when it has been taken, and the next one too.
        Break::new("takes_two")
            .force_if::<FirmwareIn>("waiting.d", "waiting.q - 2", full_again)
            .force_if::<FirmwareIn>("head.d", "head.q + 2", full_again),
    ]
}

/// Of the multiplexer of the card's two sources of frames.
pub fn frame_mux() -> Vec<Break> {
    let word_moves = "m_axis.tvalid & m_axis.tready";
    vec![
        // The source that has the stream is chosen again with each word.
        Break::new("frames_mix")
            .force_if::<FrameMux>("owner.d", "Owner::Nobody", word_moves)
            .force_if::<FrameMux>(
                "firmware_last.d",
                "owner_now == Owner::Firmware",
                word_moves,
            ),
        // The firmware never gives way.
        Break::new("framer_starves").force::<FrameMux>("firmware_last.d", "false"),
        // The datapath never gives way.
        Break::new("firmware_starves").force::<FrameMux>("firmware_last.d", "true"),
        // The source that has the stream is chosen again while a frame's first word waits.
        Break::new("offer_changes").force_if::<FrameMux>(
            "owner.d",
            "Owner::Nobody",
            "(owner.q == Owner::Nobody) & !m_axis.tready",
        ),
    ]
}

/// Of the gate before the wire.
pub fn frame_gate() -> Vec<Break> {
    let cuts = "restart & open.q";
    vec![
        // A cut frame isn't ended.
        Break::new("leaves_frames_open").force_if::<FrameGate>("ending.d", "false", cuts),
        // The word on offer is taken back.
        Break::new("takes_words_back").force_if::<FrameGate>("held.d", "last_word", cuts),
        // A cut frame ends with a whole word.
        Break::new("ends_with_whole_word").force::<FrameGate>("last_word.keep", "255"),
        // A frame may begin while `quiet`.
        Break::new("begins_frames").force::<FrameGate>("passes", "!ending.q"),
        // The rest of a frame passes for a frame.
        Break::new("passes_rests").force::<FrameGate>("drops.d", "false"),
    ]
}
