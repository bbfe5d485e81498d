//! The PROXY protocol, version 2: before the first request a trusted proxy says from where a connection comes.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::TcpStream;

/// The first bytes; no request begins so.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Length of the part before the addresses.
const FIXED: usize = 16;
/// Longest rest in bytes: addresses, and what proxies add, such as the names of certificates.
const MOST: usize = 4096;

/// Reads the header of a connection of a trusted proxy. Returns the address of the client; `None` without a header, and for
/// a connection that the proxy makes for itself.
///
/// # Errors
/// If the header breaks the format, or the connection ends within it.
pub(super) async fn source(stream: &mut TcpStream) -> io::Result<Option<IpAddr>> {
    let mut first = [0];
    match stream.peek(&mut first).await? {
        1 if first[0] == SIGNATURE[0] => read(stream).await,
        _ => Ok(None),
    }
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<IpAddr>> {
    let broken = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("PROXY: {what}"));
    let mut head = [0; FIXED];
    stream.read_exact(&mut head).await?;
    let (signature, rest) = head.split_at(SIGNATURE.len());
    if signature != SIGNATURE || rest[0] >> 4 != 2 {
        return Err(broken("the header is not of version 2"));
    }
    let length = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
    if length > MOST {
        return Err(broken("the header is too long"));
    }
    let mut addresses = vec![0; length];
    stream.read_exact(&mut addresses).await?;
    let short = || broken("the addresses are cut off");
    match (rest[0] & 0xf, rest[1] >> 4) {
        (0, _) => Ok(None),
        (1, 1) if length >= 12 => {
            let address = addresses.first_chunk::<4>().ok_or_else(short)?;
            Ok(Some(Ipv4Addr::from(*address).into()))
        }
        (1, 2) if length >= 36 => {
            let address = addresses.first_chunk::<16>().ok_or_else(short)?;
            Ok(Some(Ipv6Addr::from(*address).into()))
        }
        (1, 1 | 2) => Err(short()),
        // A Unix socket, or an unknown family.
        (1, _) => Ok(None),
        _ => Err(broken("the command is unknown")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(version: u8, family: u8, length: u16, rest: &[u8]) -> Vec<u8> {
        let fixed = [&SIGNATURE[..], &[version, family], &length.to_be_bytes()];
        [&fixed.concat(), rest].concat()
    }

    async fn found(bytes: &[u8]) -> Result<Option<String>, io::ErrorKind> {
        let read = read(&mut &*bytes).await.map_err(|error| error.kind());
        Ok(read?.map(|address| address.to_string()))
    }

    #[tokio::test]
    async fn the_source_is_read_and_what_is_cut_is_refused() {
        let v4 = [&[203, 0, 113, 9, 10, 0, 0, 1, 1, 2, 3, 4][..], &[4; 20]].concat();
        let v6 = [&Ipv6Addr::LOCALHOST.octets()[..], &[0; 20]].concat();
        let v4_header = header(0x21, 0x11, 32, &v4);
        for (bytes, address) in [
            (v4_header.clone(), Some("203.0.113.9")),
            (header(0x21, 0x11, 12, &v4), Some("203.0.113.9")),
            (header(0x21, 0x21, 36, &v6), Some("::1")),
            (header(0x20, 0x11, 12, &v4), None),
            (header(0x20, 0x00, 0, &[]), None),
            (header(0x21, 0x00, 0, &[]), None),
            (header(0x21, 0x31, 32, &v4), None),
        ] {
            assert_eq!(found(&bytes).await, Ok(address.map(str::to_owned)));
        }
        for bytes in [
            header(0x11, 0x11, 12, &v4),
            header(0x22, 0x11, 12, &v4),
            header(0x21, 0x11, 11, &v4),
            header(0x21, 0x21, 32, &v4),
            header(0x21, 0x11, 4097, &[0; 4097]),
            b"\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n".to_vec(),
        ] {
            assert_eq!(
                found(&bytes).await,
                Err(io::ErrorKind::InvalidData),
                "{bytes:?}"
            );
        }
        for length in 0..v4_header.len() {
            let cut = found(&v4_header[..length]).await;
            assert_eq!(cut, Err(io::ErrorKind::UnexpectedEof), "{length}");
        }
    }
}
