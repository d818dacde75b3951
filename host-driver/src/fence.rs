//! Fences: the wait for accesses that were allowed and may still be under way.
//!
//! ```text
//!  Cover ── what is waited for ──► ProtectionDomain::fence ──► returns when it has ended
//! ```
//!
//! A fence changes nothing and stops nobody. A revocation is one for what it revokes.

use crate::domain::ProtectionDomain;
use crate::endpoint::Endpoint;
use crate::error::CommandError;
use crate::pair::Pair;
use crate::region::MemoryRegion;
use crate::window::Window;
use abi::control::{COVER_CONTEXT, COVER_PAGES, COVER_PAIR, COVER_REGION};
use abi::mailbox::{self, Command, Nothing};
use std::ops::RangeBounds;

/// Which accesses a [fence](ProtectionDomain::fence) waits for: those about which all that is named agrees. Each name narrows it.
///
/// ```
/// # use host_driver::*;
/// # fn example(pd: &ProtectionDomain, window: &Window, endpoint: &Endpoint, pair: Pair) -> Result<(), CommandError> {
/// pd.fence(Cover::all())?;
/// pd.fence(Cover::all().window(window).pair(endpoint, pair))?;
/// pd.fence(Cover::all().window_pages(window, 0..4096))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Default)]
pub struct Cover<'a> {
    region: Option<&'a MemoryRegion>,
    pair: Option<(&'a Endpoint, Pair)>,
    context: Option<u16>,
    /// A part of a region, from its first byte; `None` in it: out of bounds.
    pages: Option<(&'a MemoryRegion, Option<(u64, u64)>)>,
}

impl<'a> Cover<'a> {
    /// Every access of the domain's memory.
    pub fn all() -> Self {
        Self::default()
    }

    /// Those of a region.
    #[must_use]
    pub fn region(self, region: &'a MemoryRegion) -> Self {
        Self {
            region: Some(region),
            ..self
        }
    }

    /// Those of a window.
    #[must_use]
    pub fn window(self, window: &'a Window) -> Self {
        self.region(window.region())
    }

    /// Those on behalf of one peer: what it puts and gets, what is put to it and got from it, and the payloads of messages to it and from it.
    #[must_use]
    pub fn pair(self, endpoint: &'a Endpoint, pair: Pair) -> Self {
        Self {
            pair: Some((endpoint, pair)),
            ..self
        }
    }

    /// The payloads of messages of a context. Puts and gets have none.
    #[must_use]
    pub fn context(self, context: u16) -> Self {
        Self {
            context: Some(context),
            ..self
        }
    }

    /// Those that touch a page of 4,096 bytes of which a part of a region is.
    #[must_use]
    pub fn pages(self, region: &'a MemoryRegion, range: impl RangeBounds<usize>) -> Self {
        Self {
            pages: Some((region, region.part(range))),
            ..self
        }
    }

    /// The same of a window.
    #[must_use]
    pub fn window_pages(self, window: &'a Window, range: impl RangeBounds<usize>) -> Self {
        self.pages(window.region(), range)
    }
}

impl ProtectionDomain {
    /// Waits until every access of the domain's memory that `cover` names and that the card allowed before has ended. Those that are allowed later aren't waited
    /// for, so traffic that goes on holds nothing up; nor are those of other domains.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the pair isn't open; `Argument` if the pages aren't a part of their region, or what is named is of another domain; `Refused`
    /// with `Unsupported` on a card without [`Capabilities::GRANTS`](crate::Capabilities::GRANTS); `Undrained` if what it waits for doesn't end within
    /// 2.1 ms, with the name of such an access.
    pub fn fence(&self, cover: Cover<'_>) -> Result<(), CommandError> {
        let mut fence = mailbox::Fence {
            domain: self.id(),
            ..mailbox::Fence::default()
        };
        let mut covers = 0;
        if let Some(region) = cover.region {
            self.owns(region.domain())?;
            covers |= COVER_REGION;
            fence.region = region.key();
        }
        if let Some(context) = cover.context {
            covers |= COVER_CONTEXT;
            fence.context = context.into();
        }
        if let Some((region, part)) = cover.pages {
            self.owns(region.domain())?;
            let (offset, length) =
                part.ok_or(CommandError::Argument("the pages are a part of the region"))?;
            covers |= COVER_PAGES;
            fence.address = region.address() + offset;
            fence.length = length;
        }
        let Nothing {} = match cover.pair {
            None => {
                fence.covers = covers.into();
                self.device().commands()?.call(Command::Fence, &fence)?
            }
            Some((endpoint, pair)) => {
                self.owns(endpoint.handle.domain())?;
                let (mut commands, pair) = endpoint.commands_for(|own| own.pair_id(pair))?;
                fence.covers = (covers | COVER_PAIR).into();
                fence.pair = pair;
                commands.call(Command::Fence, &fence)?
            }
        };
        Ok(())
    }
}
