//! The macros of jobs and their handlers. Use them through the crate `meshwork`.

mod attributes;
mod boxed;
mod duration;
mod expand;
mod handler;

use proc_macro::TokenStream;
use quote::quote;
use syn::{DeriveInput, ItemFn, parse_macro_input};

/// Implements `Job` for a struct or an enum, which is then the payload of a type of jobs. It also needs serde's
/// `Serialize` and `Deserialize`.
///
/// ```ignore
/// #[derive(Serialize, Deserialize, Job)]
/// #[job(output = Receipt, retries = 3, backoff = "2s", unique = "pay-{order}")]
/// struct Pay {
///     order: u64,
/// }
/// ```
///
/// | attribute | meaning | default |
/// |---|---|---|
/// | `name = "pay"` | type of the jobs, 1 to 64 letters, digits, `_`, `-` or `.` | the name of the type in `snake_case` |
/// | `input = Vec<u64>` | type of the output of the job before it, with `Serialize` and `Deserialize` | `()` |
/// | `output = Receipt` | type of the result, with `Serialize` and `Deserialize` | `()` |
/// | `retries = 3` | attempts after a failed first one | 0 |
/// | `backoff = "2s"` | pause before the first retry | that of the worker |
/// | `timeout = "60s"` | longest time of one attempt | 30 min |
/// | `start_timeout = "1h"` | time within which a worker has to begin the job | none |
/// | `priority = "high"` | `high`, `normal` or `low` | `normal` |
/// | `group = "gpu"` | group of the workers | workers without a group |
/// | `key = "{customer}"` | concurrency key, with fields of the job | none |
/// | `unique = "pay-{order}"` | name that only one open job may have, with fields of the job | none |
/// | `concurrent = false` | the job runs alone on its worker | true |
///
/// Durations have a unit: `ms`, `s`, `min`, `h` or `d`. Each call can choose other options.
#[proc_macro_derive(Job, attributes(job, __job))]
pub fn derive_job(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::job(&input)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Makes a struct or an enum a type of jobs: `#[derive(Job)]` with serde's `Serialize` and `Deserialize`, for programs
/// that need no other part of serde. The arguments are those of [`macro@Job`].
///
/// ```ignore
/// #[meshwork::job(output = String, retries = 3)]
/// struct Greet {
///     name: String,
/// }
/// ```
#[proc_macro_attribute]
pub fn job(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let arguments = proc_macro2::TokenStream::from(arguments);
    let item = parse_macro_input!(item as DeriveInput);
    quote! {
        #[derive(::meshwork::serde::Serialize, ::meshwork::serde::Deserialize, ::meshwork::Job)]
        #[serde(crate = "::meshwork::serde")]
        #[__job(#arguments)]
        #item
    }
    .into()
}

/// Makes the compiler name the fault of a function that is no handler: the argument that cannot be taken, the result that
/// is not the job's, the value that cannot go to another thread. The function stays as it is, so a handler needs this only
/// while it does not compile.
///
/// ```ignore
/// #[meshwork::handler]
/// async fn greet(job: Greet) -> Result<String, String> {
///     Ok(format!("Hello, {}!", job.name))
/// }
/// ```
#[proc_macro_attribute]
pub fn handler(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let function = parse_macro_input!(item as ItemFn);
    if !arguments.is_empty() {
        let message = "`#[handler]` has no arguments";
        let error = syn::Error::new(proc_macro2::Span::call_site(), message).into_compile_error();
        return quote!(#function #error).into();
    }
    handler::checked(&function).into()
}

/// Puts the future of an async function into a box, so that it is compiled once, with its function, and not in each crate
/// that awaits it. For the crates of Meshwork; they need `futures_util`. All borrowed arguments have one lifetime, and the
/// future is `Send`.
#[doc(hidden)]
#[proc_macro_attribute]
pub fn boxed(_arguments: TokenStream, item: TokenStream) -> TokenStream {
    boxed::boxed(parse_macro_input!(item as ItemFn))
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
