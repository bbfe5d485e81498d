//! One client: bytes in, commands to its session, replies and pushed messages out.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};

use super::wire::{MAX_PUSHES, MAX_REPLIES, Wire};
use crate::{
    engine::Session,
    resp::{ProtocolError, Reply, RequestParser, encode_reply},
};

/// Serves `session` until the client goes away, breaks the protocol, its session is over, or
/// `stopped` comes: then the client still gets the replies of commands that have run.
///
/// Dropping the future ends the connection at once. Either way a command that waits takes nothing.
pub(super) async fn serve<R, W>(
    mut session: Session,
    reader: R,
    writer: W,
    stopped: impl Future,
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut wire = Wire::new(reader, writer);
    tokio::select! {
        gone = talk(&mut session, &mut wire) => gone?,
        _ = stopped => {}
    }
    // Also one whose session is over, as after QUIT, is to have its last replies.
    wire.flush(|| false).await
}

async fn talk<R, W>(session: &mut Session, wire: &mut Wire<R, W>) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut parser = RequestParser::default();
    loop {
        if let Err(error) = run_buffered(session, &mut parser, wire).await? {
            put(session, &Reply::Error(error.to_string()), wire);
            return Ok(());
        }
        if session.is_over() {
            return Ok(());
        }
        tokio::select! {
            push = session.next_push() => match push {
                Some(push) => {
                    put(session, &push, wire);
                    wire.make_room(MAX_PUSHES, || session.is_over()).await?;
                }
                None => return Ok(()),
            },
            moved = wire.progress(usize::MAX) => moved?,
        }
    }
}

/// Runs every command that has wholly arrived. Their replies go out together.
async fn run_buffered<R, W>(
    session: &mut Session,
    parser: &mut RequestParser,
    wire: &mut Wire<R, W>,
) -> io::Result<Result<(), ProtocolError>>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    while !session.is_over() {
        let args = match parser.next(&mut wire.input) {
            Ok(Some(args)) => args,
            Ok(None) => break,
            Err(error) => return Ok(Err(error)),
        };
        let reply = wire.until(session.call(&args)).await?;
        put_pushes(session, wire);
        put(session, &reply, wire);
        wire.make_room(MAX_REPLIES, || session.is_over()).await?;
        // A long pipeline must not keep the others of this thread waiting.
        tokio::task::consume_budget().await;
    }
    Ok(Ok(()))
}

fn put_pushes<R, W>(session: &mut Session, wire: &mut Wire<R, W>)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    while let Some(push) = session.try_push() {
        put(session, &push, wire);
    }
}

fn put<R, W>(session: &Session, reply: &Reply, wire: &mut Wire<R, W>)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    encode_reply(reply, session.protocol(), wire.output());
}
