//! The answer of a script that returns an array, read field by field. An error names the verb and the field.

use std::time::Duration;

use redis::{FromRedisValue, Value};

use crate::error::Error;

/// The unread fields of an answer.
pub(crate) struct Answer {
    verb: &'static str,
    fields: std::vec::IntoIter<Value>,
}

impl Answer {
    pub(crate) fn new(verb: &'static str, answer: Value) -> Result<Self, Error> {
        let fields = match answer {
            Value::Array(fields) => fields.into_iter(),
            other => {
                let answer = format!("{other:?}");
                return Err(Error::Answer { verb, answer });
            }
        };
        Ok(Self { verb, fields })
    }

    /// Returns the next field. `field` is its name for an error.
    ///
    /// # Errors
    /// The field is missing, or has another type.
    pub(crate) fn next<T: FromRedisValue>(&mut self, field: &'static str) -> Result<T, Error> {
        let verb = self.verb;
        let failed = |why| Error::Field { verb, field, why };
        let value = self.fields.next();
        let value = value.ok_or_else(|| failed("it is missing".to_owned()))?;
        T::from_redis_value(value).map_err(|error| failed(error.to_string()))
    }

    /// Returns the next field, a number that is 1 for true.
    pub(crate) fn flag(&mut self, field: &'static str) -> Result<bool, Error> {
        Ok(self.next::<i64>(field)? == 1)
    }

    /// Returns the next field, in milliseconds; `None` for a negative number.
    pub(crate) fn millis(&mut self, field: &'static str) -> Result<Option<Duration>, Error> {
        let ms = u64::try_from(self.next::<i64>(field)?);
        Ok(ms.ok().map(Duration::from_millis))
    }

    /// Returns the next field, a list of texts. Invalid UTF-8 is replaced.
    pub(crate) fn texts(&mut self, field: &'static str) -> Result<Vec<String>, Error> {
        let texts: Vec<Vec<u8>> = self.next(field)?;
        Ok(texts.into_iter().map(meshwork_model::job::text).collect())
    }

    /// Returns the next field, a nested answer.
    pub(crate) fn nested(&mut self, field: &'static str) -> Result<Self, Error> {
        Self::new(self.verb, self.next(field)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(fields: Vec<Value>) -> Answer {
        Answer::new("claim", Value::Array(fields)).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn fields_are_read_in_their_order() {
        let text = Value::BulkString(b"a".to_vec());
        let mut answer = answer(vec![
            Value::Int(7),
            Value::Int(1),
            Value::Int(-1),
            Value::Int(5),
            Value::Array(vec![text]),
            Value::Array(vec![Value::Int(3)]),
        ]);
        assert_eq!(answer.next::<usize>("dropped").unwrap(), 7);
        assert!(answer.flag("more").unwrap());
        assert_eq!(answer.millis("next").unwrap(), None);
        let five = Some(Duration::from_millis(5));
        assert_eq!(answer.millis("next").unwrap(), five);
        assert_eq!(answer.texts("ids").unwrap(), ["a"]);
        let mut nested = answer.nested("claim").unwrap();
        assert_eq!(nested.next::<usize>("jobs").unwrap(), 3);
    }

    #[test]
    fn an_error_names_the_verb_and_the_field() {
        let mut answer = answer(vec![Value::Array(Vec::new())]);
        let odd = answer.next::<u64>("at_ms").unwrap_err().to_string();
        assert!(
            odd.starts_with("claim: the field `at_ms` of the answer"),
            "{odd}"
        );
        let missing = answer.flag("more").unwrap_err().to_string();
        assert_eq!(
            missing,
            "claim: the field `more` of the answer cannot be read: it is missing"
        );
        assert!(Answer::new("claim", Value::Int(1)).is_err());
    }
}
