//! Our worker and our client on jobs of Bananas, as other programs see them on the wire.

mod keeper;
mod late;
mod limits;
mod monitor;
mod over;
mod replay;
mod reports;
mod routes;
mod stops;
mod support;
mod table;
mod waits;
mod worker;
