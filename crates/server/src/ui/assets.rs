//! Stylesheet, script and icon, each under a name with its digest, so that browsers keep it for ever.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// A file of the pages.
#[derive(Debug)]
pub(super) struct Asset {
    /// Name with a part of its digest.
    pub(super) name: String,
    kind: &'static str,
    content: &'static str,
}

impl Asset {
    fn new((name, ending): (&str, &str), kind: &'static str, content: &'static str) -> Self {
        let digest = HEXLOWER.encode(&Sha256::digest(content)[..6]);
        let name = format!("{name}-{digest}.{ending}");
        Self {
            name,
            kind,
            content,
        }
    }
}

/// The stylesheet.
pub(super) static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    let content = include_str!("assets/ui.css");
    Asset::new(("ui", "css"), "text/css; charset=utf-8", content)
});

/// The script.
pub(super) static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    let content = include_str!("assets/ui.js");
    Asset::new(("ui", "js"), "text/javascript; charset=utf-8", content)
});

/// The icon.
pub(super) static ICON: LazyLock<Asset> = LazyLock::new(|| {
    let content = include_str!("assets/icon.svg");
    Asset::new(("icon", "svg"), "image/svg+xml", content)
});

/// Serves a file.
pub(super) async fn file(Path(name): Path<String>) -> Response {
    let all = [&*STYLE, &*SCRIPT, &*ICON];
    let Some(asset) = all.into_iter().find(|asset| asset.name == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(asset.kind)),
        (
            CACHE_CONTROL,
            HeaderValue::from_static("public, max-age=31536000, immutable"),
        ),
    ];
    (headers, asset.content).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_short() {
        assert!(SCRIPT.content.lines().count() <= 300);
    }
}
