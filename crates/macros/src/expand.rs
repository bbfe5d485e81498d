//! The implementation of `Job` as tokens.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Fields, LitStr, Type};

use crate::attributes::Attributes;

pub(crate) fn job(input: &DeriveInput) -> syn::Result<TokenStream> {
    let attributes = Attributes::of(input)?;
    let name = match &attributes.name {
        Some(name) => name.clone(),
        None => snake_case(&input.ident.to_string()),
    };
    let or_unit = |given: &Option<Type>| match given {
        Some(given) => quote!(#given),
        None => quote!(()),
    };
    let (input_type, output) = (or_unit(&attributes.input), or_unit(&attributes.output));
    let defaults = defaults(input, &attributes)?;
    let ident = &input.ident;
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics ::meshwork::Job for #ident #type_generics #where_clause {
            const NAME: &'static str = #name;
            type Input = #input_type;
            type Output = #output;
            #defaults
        }
    })
}

/// The function that sets the options, if there are any.
fn defaults(input: &DeriveInput, attributes: &Attributes) -> syn::Result<TokenStream> {
    let mut calls = Vec::new();
    if let Some(retries) = attributes.retries {
        calls.push(quote!(.retries(#retries)));
    }
    let durations = [
        ("backoff", attributes.backoff),
        ("timeout", attributes.timeout),
        ("start_timeout", attributes.start_timeout),
    ];
    for (option, ms) in durations {
        let option = format_ident!("{option}");
        if let Some(ms) = ms {
            calls.push(quote!(.#option(::core::time::Duration::from_millis(#ms))));
        }
    }
    if let Some(priority) = attributes.priority {
        let priority = format_ident!("{priority}");
        calls.push(quote!(.priority(::meshwork::Priority::#priority)));
    }
    if let Some(group) = &attributes.group {
        // The name was checked above.
        calls.push(quote!(.group(#group.parse().expect("the name of a group"))));
    }
    if let Some(concurrent) = attributes.concurrent {
        calls.push(quote!(.concurrent(#concurrent)));
    }
    if let Some(key) = &attributes.key {
        let key = filled(input, key)?;
        calls.push(quote!(.key(#key)));
    }
    if let Some(unique) = &attributes.unique {
        let unique = filled(input, unique)?;
        calls.push(quote!(.unique(
            #unique,
            ::meshwork::Until::Done,
            ::meshwork::OnDuplicate::Keep,
        )));
    }
    if calls.is_empty() {
        return Ok(TokenStream::new());
    }
    Ok(quote! {
        fn defaults(&self, request: ::meshwork::JobRequest) -> ::meshwork::JobRequest {
            request #(#calls)*
        }
    })
}

/// A text with the fields of the job that it names in braces.
fn filled(input: &DeriveInput, text: &LitStr) -> syn::Result<TokenStream> {
    let named = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => Some(&fields.named),
            _ => None,
        },
        _ => None,
    };
    let Some(fields) = named else {
        if text.value().contains('{') {
            let message = "only a struct with named fields can have fields in a text: implement `Job::defaults` instead";
            return Err(syn::Error::new(text.span(), message));
        }
        return Ok(quote!(#text));
    };
    let fields = fields.iter().filter_map(|field| field.ident.as_ref());
    Ok(quote!({
        #[allow(unused_variables)]
        let Self { #(#fields),* } = self;
        ::std::format!(#text)
    }))
}

/// Writes `SendMail` as `send_mail`.
fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    let mut before = None;
    let chars: Vec<char> = name.chars().collect();
    for (at, c) in chars.iter().enumerate() {
        let is_last_of_capitals = before.is_some_and(char::is_uppercase)
            && chars.get(at + 1).is_some_and(|next| next.is_lowercase());
        let begins =
            before.is_some_and(|c: char| !c.is_uppercase() && c != '_') || is_last_of_capitals;
        if c.is_uppercase() && begins {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
        before = Some(*c);
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::snake_case;

    #[test]
    fn names_of_types_are_words() {
        for (name, word) in [
            ("Pay", "pay"),
            ("SendMail", "send_mail"),
            ("HTTPGet", "http_get"),
            ("Step2Run", "step2_run"),
            ("already_snake", "already_snake"),
        ] {
            assert_eq!(snake_case(name), word);
        }
    }
}
