//! Key files with a passphrase: what opens them, and what does not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::context::secret::key_file::{KeyFile, new_key, write_key};
use crate::context::secret::passphrase::*;

fn refused(file: &Path, passphrase: &Passphrase) -> String {
    let file = KeyFile::open(file).unwrap();
    file.key(Some(passphrase)).unwrap_err().to_string()
}

#[test]
fn a_key_comes_back_with_its_passphrase_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("actor.key");
    let (key, right) = (new_key(), Passphrase::new("right horse").unwrap());
    write_key(&path, &key, Some(&right)).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert!(
        text.starts_with("-----BEGIN AGE ENCRYPTED FILE-----"),
        "{text}"
    );
    assert!(!text.contains("secret"), "{text}");
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let file = KeyFile::open(&path).unwrap();
    assert!(file.is_encrypted());
    assert_eq!(file.key(Some(&right)).unwrap().public(), key.public());
    let none = file.key(None).unwrap_err().to_string();
    assert!(none.contains("MESHWORK_ACTOR_PASSPHRASE_FILE"), "{none}");
    let wrong = refused(&path, &Passphrase::new("wrong horse").unwrap());
    assert!(wrong.contains("another passphrase"), "{wrong}");
    assert!(!wrong.contains("horse"), "{wrong}");
}

#[test]
fn a_changed_or_costly_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("actor.key");
    let right = Passphrase::new("right").unwrap();
    write_key(&path, &new_key(), Some(&right)).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    let cut = refused(&path, &right);
    assert!(cut.contains("was cut or changed"), "{cut}");
    // Refused before the work is done: 2^40 would never end.
    let costly = "age-encryption.org/v1\n-> scrypt AAAAAAAAAAAAAAAAAAAAAA 40\n\
                  AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n\
                  --- AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n0123456789abcdef";
    fs::write(&path, costly).unwrap();
    let costly = refused(&path, &right);
    assert!(costly.contains("2^40"), "{costly}");
    // What is encrypted has to be a key file.
    fs::write(&path, right.encrypt("other").unwrap()).unwrap();
    let other = refused(&path, &right);
    assert!(other.contains("is no key file"), "{other}");
}

#[test]
fn a_passphrase_file_is_one_private_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("phrase");
    let write = |text: &str, mode| {
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let plain = Passphrase::new("two words ").unwrap();
    for text in ["two words ", "two words \n", "two words \r\n"] {
        write(text, 0o600);
        assert!(
            Passphrase::from_file(&path).unwrap().is_same(&plain),
            "{text:?}"
        );
    }
    assert!(!plain.is_same(&Passphrase::new("two words").unwrap()));
    for text in ["", "\n", "tw\no\n", &"x".repeat(MAX_PASSPHRASE + 1)] {
        write(text, 0o600);
        let said = Passphrase::from_file(&path).unwrap_err().to_string();
        assert!(
            said.contains("one line") && said.contains("phrase"),
            "{said}"
        );
    }
    write("two words", 0o644);
    let said = Passphrase::from_file(&path).unwrap_err().to_string();
    assert!(said.contains("mode 644") && !said.contains("two"), "{said}");
    assert!(!format!("{plain:?}").contains("two"));
}
