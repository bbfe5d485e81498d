//! Values that all handlers of a worker share.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// A value, with the name of its type.
type Value = (&'static str, Arc<dyn Any + Send + Sync>);

/// One value for each type. Cheap to clone.
#[derive(Clone, Default)]
pub struct States(Arc<HashMap<TypeId, Value>>);

impl States {
    /// Adds a value. A value of the same type is replaced.
    pub(crate) fn insert<T: Clone + Send + Sync + 'static>(&mut self, value: T) {
        let value: Arc<dyn Any + Send + Sync> = Arc::new(value);
        Arc::make_mut(&mut self.0).insert(TypeId::of::<T>(), (type_name::<T>(), value));
    }

    /// Returns a clone of the value of this type.
    #[must_use]
    pub fn get<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        let (_, value) = self.0.get(&TypeId::of::<T>())?;
        value.downcast_ref::<T>().cloned()
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.0.values().map(|(name, _)| name))
            .finish()
    }
}
