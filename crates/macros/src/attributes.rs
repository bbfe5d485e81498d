//! The attributes of `#[job(…)]`.

use syn::meta::ParseNestedMeta;
use syn::{Attribute, DeriveInput, LitBool, LitInt, LitStr, Type};

use crate::duration::millis;

/// Longest name of a type of jobs, or of a group.
const MAX_NAME: usize = 64;
/// Names of all attributes.
const KNOWN: &str = "name, input, output, retries, backoff, timeout, start_timeout, priority, group, key, unique, concurrent";
/// Words of the priorities.
const PRIORITIES: [(&str, &str); 3] = [("high", "High"), ("normal", "Normal"), ("low", "Low")];

/// The values; `None` for those that are not given.
#[derive(Default)]
pub(crate) struct Attributes {
    pub(crate) name: Option<String>,
    pub(crate) input: Option<Type>,
    pub(crate) output: Option<Type>,
    pub(crate) retries: Option<u32>,
    pub(crate) backoff: Option<u64>,
    pub(crate) timeout: Option<u64>,
    pub(crate) start_timeout: Option<u64>,
    /// Name of the variant of `Priority`.
    pub(crate) priority: Option<&'static str>,
    pub(crate) group: Option<String>,
    pub(crate) key: Option<LitStr>,
    pub(crate) unique: Option<LitStr>,
    pub(crate) concurrent: Option<bool>,
}

impl Attributes {
    /// Reads the attributes of a type.
    pub(crate) fn of(input: &DeriveInput) -> syn::Result<Self> {
        let mut attributes = Self::default();
        let ours = |it: &&Attribute| it.path().is_ident("job") || it.path().is_ident("__job");
        for attribute in input.attrs.iter().filter(ours) {
            attribute.parse_nested_meta(|meta| attributes.read(&meta))?;
        }
        Ok(attributes)
    }

    fn read(&mut self, meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
        let name = meta
            .path
            .get_ident()
            .map(ToString::to_string)
            .unwrap_or_default();
        match name.as_str() {
            "name" => once(meta, &mut self.name, word(&text(meta)?)?),
            "input" => once(meta, &mut self.input, meta.value()?.parse()?),
            "output" => once(meta, &mut self.output, meta.value()?.parse()?),
            "retries" => {
                let number = meta.value()?.parse::<LitInt>()?.base10_parse()?;
                once(meta, &mut self.retries, number)
            }
            "backoff" => once(meta, &mut self.backoff, millis(&text(meta)?)?),
            "timeout" => once(meta, &mut self.timeout, millis(&text(meta)?)?),
            "start_timeout" => once(meta, &mut self.start_timeout, millis(&text(meta)?)?),
            "priority" => once(meta, &mut self.priority, priority(&text(meta)?)?),
            "group" => once(meta, &mut self.group, word(&text(meta)?)?),
            "key" => once(meta, &mut self.key, text(meta)?),
            "unique" => once(meta, &mut self.unique, text(meta)?),
            "concurrent" => {
                let is_concurrent = meta.value()?.parse::<LitBool>()?.value;
                once(meta, &mut self.concurrent, is_concurrent)
            }
            _ => Err(meta.error(format!(
                "`{name}` is no attribute of a job: the attributes are {KNOWN}"
            ))),
        }
    }
}

fn text(meta: &ParseNestedMeta<'_>) -> syn::Result<LitStr> {
    meta.value()?.parse()
}

fn once<T>(meta: &ParseNestedMeta<'_>, slot: &mut Option<T>, value: T) -> syn::Result<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(meta.error("this attribute is given twice")),
    }
}

/// Reads a name of letters, digits, `_`, `-` and `.`.
fn word(text: &LitStr) -> syn::Result<String> {
    let name = text.value();
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(fits) {
        let message =
            format!("{name:?} is no name: write 1 to {MAX_NAME} letters, digits, _, - or .");
        return Err(syn::Error::new(text.span(), message));
    }
    Ok(name)
}

fn priority(text: &LitStr) -> syn::Result<&'static str> {
    let word = text.value();
    let known = PRIORITIES.iter().find(|(name, _)| *name == word);
    known.map(|(_, variant)| *variant).ok_or_else(|| {
        syn::Error::new(
            text.span(),
            format!("{word:?} is no priority: write high, normal or low"),
        )
    })
}
