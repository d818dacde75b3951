//! The package of a text: what the source has given a name and several modules speak of.
//!
//! ```text
//!   const EAGER_MAX: usize = 1024;    ►   localparam logic [31:0] EAGER_MAX = 32'd1024;
//!   Status::Truncated                 ►   localparam logic [7:0] Status_Truncated = 8'd7;
//!   enum State { Idle, Busy }         ►   typedef enum logic { State_Idle = 1'd0, State_Busy = 1'd1 } State_t;
//!   struct Query { key, tag }         ►   typedef struct packed { logic [7:0] tag; logic [15:0] key; } Query_t;
//! ```
//!
//! The first field of a struct is the least significant; in Verilog that is the last. A module says `pkg::EAGER_MAX`:
//! imports would be shorter, but yosys reads none. What two modules call by one name and mean differently
//! (`const LAST` of two files) isn't in the package: each module has its own. Types cross modules, so two of one name
//! (`State`) are called after the blocks that have them, `Fetcher_State_t`. Only what some module mentions is printed,
//! in the order of the alphabet.

use super::collect::Module;
use super::constant::{Constant, constant_name};
use super::ir::Part;
use super::names;
use super::text::{line, number, range};
use super::types::{clog2, width_of};
use num_bigint::BigInt;
use rust_hdl::prelude::{TypeDescriptor, TypeKind};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// The package's name.
pub(crate) const PACKAGE: &str = "pkg";

/// Index of a type in the package.
pub(crate) type TypeId = usize;

/// An enum or a struct.
struct Definition {
    /// Name in the source.
    source: String,
    /// Name of the block that it is called after, if there is another of its name.
    owner: Option<String>,
    /// Name in the package, without `_t`.
    name: String,
    shape: Shape,
}

/// What a type is made of.
pub(crate) enum Shape {
    /// Names of its variants in the package, the first is that of 0.
    Enum(Vec<String>),
    /// Its fields, the least significant first.
    Struct(Vec<Field>),
}

/// A field of a struct.
pub(crate) struct Field {
    /// Name in the text.
    pub(crate) name: String,
    /// Where it is in the struct.
    pub(crate) part: Part,
    /// Its type, if that has a name.
    pub(crate) ty: Option<TypeId>,
}

#[derive(Default)]
pub(crate) struct Package {
    /// Constants with one meaning in all modules, by their printed name.
    constants: BTreeMap<String, Constant>,
    /// Those that some module mentions.
    used: RefCell<BTreeSet<String>>,
    types: Vec<Definition>,
    /// Types by what they are.
    ids: HashMap<String, TypeId>,
    /// Types that some module mentions, by name.
    used_types: RefCell<BTreeMap<String, TypeId>>,
}

impl Package {
    pub(crate) fn new(modules: &[Module]) -> Self {
        let mut package = Package::default();
        for module in modules {
            for signal in &module.signals {
                package.add(&signal.descriptor, module);
            }
        }
        let mut taken = package.name_types();
        let mut constants: BTreeMap<String, Option<Constant>> = BTreeMap::new();
        for (path, constant) in modules.iter().flat_map(|module| &module.constants) {
            constants
                .entry(constant_name(path))
                .and_modify(|known| {
                    if known.as_ref() != Some(constant) {
                        *known = None;
                    }
                })
                .or_insert_with(|| Some(constant.clone()));
        }
        for (name, constant) in constants {
            if let Some(constant) = constant.filter(|_| !taken.contains_key(&name)) {
                taken.insert(name.clone(), 1);
                package.constants.insert(name, constant);
            }
        }
        package
    }

    /// Adds an enum or a struct that `module` has, after those in it.
    fn add(&mut self, descriptor: &TypeDescriptor, module: &Module) -> Option<TypeId> {
        let shape = match &descriptor.kind {
            TypeKind::Bits(_) | TypeKind::Signed(_) => return None,
            _ if width_of(descriptor) == 0 => return None,
            TypeKind::Enum(variants) => {
                let names = variants.iter().map(|v| match v.rsplit_once("::") {
                    Some((_, name)) => name.to_string(),
                    None => v.clone(),
                });
                Shape::Enum(names.collect())
            }
            TypeKind::Composite(fields) => {
                let mut all = vec![];
                let mut taken = HashMap::new();
                let mut offset = 0;
                for field in fields {
                    let width = width_of(&field.kind);
                    let ty = self.add(&field.kind, module);
                    let plain = field.fieldname.trim_start_matches("r#");
                    let wanted = match names::is_keyword(plain) || names::is_word_of_cpp(plain) {
                        true => format!("{plain}_"),
                        false => plain.to_string(),
                    };
                    if width > 0 {
                        all.push(Field {
                            name: names::unique(&wanted, &mut taken),
                            part: Part { offset, width },
                            ty,
                        });
                    }
                    offset += width;
                }
                Shape::Struct(all)
            }
        };
        let next = self.types.len();
        let id = *self.ids.entry(key(descriptor)).or_insert(next);
        if id == next {
            self.types.push(Definition {
                source: descriptor.name.clone(),
                owner: None,
                name: String::new(),
                shape,
            });
        }
        // A register is no module, and `Fifo_State_4` is about no state.
        if self.types[id].owner.is_none()
            && module.known.is_none()
            && let Some(title) = &module.title
            && !title.split('_').skip(1).any(|part| part == descriptor.name)
        {
            self.types[id].owner = Some(names::base(title).to_string());
        }
        Some(id)
    }

    /// Gives each type and variant its name. Returns the names that are taken.
    fn name_types(&mut self) -> HashMap<String, usize> {
        let mut of_name: HashMap<String, usize> = HashMap::new();
        for ty in &self.types {
            *of_name.entry(ty.source.clone()).or_default() += 1;
        }
        let mut taken = HashMap::new();
        for ty in &mut self.types {
            let wanted = match &ty.owner {
                Some(owner) if of_name[&ty.source] > 1 => format!("{owner}_{}", ty.source),
                _ => ty.source.clone(),
            };
            ty.name = names::unique(&wanted, &mut taken);
            if let Shape::Enum(variants) = &mut ty.shape {
                for variant in variants {
                    *variant = names::unique(&format!("{}_{variant}", ty.name), &mut taken);
                }
            }
        }
        taken
    }

    /// The type of a signal, if it has a name.
    pub(crate) fn id(&self, descriptor: &TypeDescriptor) -> Option<TypeId> {
        match descriptor.kind {
            TypeKind::Bits(_) | TypeKind::Signed(_) => None,
            _ => self.ids.get(&key(descriptor)).copied(),
        }
    }

    pub(crate) fn shape(&self, id: TypeId) -> &Shape {
        &self.types[id].shape
    }

    /// How modules mention a type.
    pub(crate) fn ty(&self, id: TypeId) -> String {
        let name = &self.types[id].name;
        self.used_types.borrow_mut().insert(name.clone(), id);
        format!("{PACKAGE}::{name}_t")
    }

    /// How modules mention the variant of a number, if there is one.
    pub(crate) fn variant(&self, id: TypeId, number: &BigInt) -> Option<String> {
        let Shape::Enum(variants) = &self.types[id].shape else {
            return None;
        };
        let variant = variants.get(usize::try_from(number).ok()?)?;
        self.ty(id);
        Some(format!("{PACKAGE}::{variant}"))
    }

    /// Whether a constant of a kernel is in the package.
    pub(crate) fn holds(&self, path: &str) -> bool {
        self.constants.contains_key(&constant_name(path))
    }

    /// How modules mention a constant that is in the package.
    pub(crate) fn constant(&self, path: &str) -> String {
        let name = constant_name(path);
        let mention = format!("{PACKAGE}::{name}");
        self.used.borrow_mut().insert(name);
        mention
    }

    /// The package, or nothing if no module mentions anything in it.
    pub(crate) fn print(&self) -> String {
        let mut out = String::new();
        for name in self.used.borrow().iter() {
            let declaration = self.constants[name].declaration(name);
            line(&mut out, format_args!("  {declaration};"));
        }
        let mut done = HashSet::new();
        for id in self.used_types.borrow().values() {
            self.print_type(*id, &mut done, &mut out);
        }
        match out.is_empty() {
            true => out,
            false => format!("\npackage {PACKAGE};\n{out}endpackage\n"),
        }
    }

    /// A type after those in it.
    fn print_type(&self, id: TypeId, done: &mut HashSet<TypeId>, out: &mut String) {
        if !done.insert(id) {
            return;
        }
        let Definition { name, shape, .. } = &self.types[id];
        match shape {
            Shape::Enum(variants) => {
                let width = clog2(variants.len());
                line(out, format_args!("  typedef enum logic{} {{", range(width)));
                for (value, variant) in variants.iter().enumerate() {
                    let value = number(&value.into(), width);
                    let comma = if variants.ends_with(std::slice::from_ref(variant)) {
                        ""
                    } else {
                        ","
                    };
                    line(out, format_args!("    {variant} = {value}{comma}"));
                }
            }
            Shape::Struct(fields) => {
                for field in fields {
                    if let Some(inner) = field.ty {
                        self.print_type(inner, done, out);
                    }
                }
                line(out, format_args!("  typedef struct packed {{"));
                for Field { name, part, ty } in fields.iter().rev() {
                    let ty = match ty {
                        Some(inner) => format!("{}_t", self.types[*inner].name),
                        None => format!("logic{}", range(part.width)),
                    };
                    line(out, format_args!("    {ty} {name};"));
                }
            }
        }
        line(out, format_args!("  }} {name}_t;"));
    }
}

/// What tells a type from others: its name and all that is in it.
fn key(descriptor: &TypeDescriptor) -> String {
    format!("{descriptor:?}")
}
