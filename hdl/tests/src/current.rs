//! A model is a library that was built some time ago. Is it of the gates as they are now?
//!
//! ```text
//!   Model::text()          what Verilator compiled ──┐
//!   catalogue::text_of()   what the printer prints ──┴─► the same, or the test fails
//! ```
//!
//! Cargo doesn't build models, so without this a test of changed gates would run, and pass, on those from before.

use std::collections::BTreeMap;
use std::env;
use std::sync::{Mutex, OnceLock, PoisonError};

use hdl::catalogue::text_of;
use model::Model;

/// What was found of each model: a test opens one often, and to print a large one takes a second.
static FOUND: Mutex<BTreeMap<&str, &OnceLock<bool>>> = Mutex::new(BTreeMap::new());

/// Sees to it that a model is of the gates as they are now.
///
/// # Panics
/// If it isn't, with the command that builds it.
pub fn check(model: &Model) {
    let name = model.name();
    let known = {
        let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        *found
            .entry(name)
            .or_insert_with(|| Box::leak(Box::default()))
    };
    let is = known.get_or_init(|| is_of(model, name));
    let trace = match env::var_os("POSTHORN_WAVES") {
        None => "",
        Some(_) => "--trace ",
    };
    assert!(
        is,
        "the model {name} is of earlier gates: cargo xtask models {trace}{name}"
    );
}

/// Whether a model is of the gates of this top as they are now.
pub fn is_of(model: &Model, top: &str) -> bool {
    let printed = text_of(top);
    model.text().is_ok_and(|text| text == printed)
}
