//! Context of flow commands, and the actor.

use std::collections::BTreeMap;
use std::path::Path;

use meshwork::Client;
use meshwork::context::{ContextHandle, Identity};
use meshwork::flow::{
    self, FlowClient, FlowSession, FlowTexts, Given, Plan, Stepper, StepperHandle, parse_inputs,
    set_inputs,
};
use meshwork::spread::{Spread, SpreadName};
use meshwork_model::access::{Object, Operation};
use meshwork_model::keys::context::ContextId;
use meshwork_model::name::ScheduleName;
use meshwork_ops::warnings;
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::args::input::InputArg;
use crate::error::CommandError;
use crate::identity::ContextArgs;

/// Flows of a context, for an actor who may read them. The session checks further permissions.
pub(super) struct Place {
    pub(super) client: Client,
    pub(super) flows: FlowClient,
    pub(super) session: FlowSession,
    context: ContextHandle,
    me: Identity,
}

/// Options that select the context of a new flow.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct NewPlace {
    /// Spread queue: the flow runs whole in the shorter of two of its parts [default: that of `spread:` in the file]
    #[arg(long, value_name = "QUEUE", conflicts_with = "context")]
    spread: Option<SpreadName>,
    #[command(flatten)]
    place: ContextArgs,
}

impl NewPlace {
    /// Returns the parameters of the API that select the context. By default it is that of the file, or the only one.
    fn params(&self) -> Map<String, Value> {
        let spread = self.spread.as_ref().map(ToString::to_string);
        let mut params = Map::from_iter([("spread".to_owned(), json!(spread))]);
        if let (None, Some(id)) = (spread, self.place.context) {
            params.insert("context".to_owned(), id.get().into());
        }
        params
    }

    /// Returns the context: the options go before the file. Creates the first actor and context, but no parts.
    async fn open(
        &self,
        source: &Source,
        context: &App,
    ) -> Result<(Identity, ContextHandle), CommandError> {
        let of_file = match source {
            Source::File(plan) if self.place.context.is_none() => plan.spread.as_ref(),
            _ => None,
        };
        let Some(name) = self.spread.as_ref().or(of_file) else {
            return match source {
                Source::File(_) => self.place.create(context).await,
                // A name that is wrong creates nothing.
                Source::Deployed(name) => {
                    let found = self.place.find(context).await?;
                    found.ok_or_else(|| not_deployed(name, None))
                }
            };
        };
        let (node, me) = self.place.identity.open(context).await?;
        let spread = Spread::open(&node, &me, name.clone()).await?;
        Ok((me, spread.shorter_part().await?))
    }
}

impl Place {
    /// Opens the context that the options name. Creates nothing.
    pub(super) async fn open(args: &ContextArgs, context: &App) -> Result<Self, CommandError> {
        let (me, handle) = args.open(context).await?;
        Self::of(&handle, &me).await
    }

    /// Same as [`Self::open`], for a deployment: creates the first actor and context.
    pub(super) async fn create(args: &ContextArgs, context: &App) -> Result<Self, CommandError> {
        let (me, handle) = args.create(context).await?;
        Self::of(&handle, &me).await
    }

    /// Same as [`Self::create`], for a new flow.
    pub(super) async fn to_submit(
        (args, source): (&NewPlace, &Source),
        context: &App,
    ) -> Result<Self, CommandError> {
        let (me, handle) = args.open(source, context).await?;
        Self::of(&handle, &me).await
    }

    async fn of(handle: &ContextHandle, me: &Identity) -> Result<Self, CommandError> {
        let client = handle.client(me, Object::Flow, Operation::Read).await?;
        let session = handle.flows(me).await?;
        let flows = session.client().clone();
        Ok(Self {
            client,
            flows,
            session,
            context: handle.clone(),
            me: me.clone(),
        })
    }

    /// Returns the warnings about a flow of the context.
    pub(super) async fn warnings(&self, plan: &Plan) -> Result<Vec<String>, CommandError> {
        Ok(warnings::of_flow(&self.session, &self.client, plan).await?)
    }

    /// Starts to run steps of flows, with the actor's signature for messages.
    pub(super) fn stepper(&self) -> Result<StepperHandle, CommandError> {
        let stepper = Stepper::new(self.client.broker())?;
        Ok(stepper.signing(&self.context, &self.me).start())
    }

    /// Same as [`Self::to_submit`], for an actor who runs jobs too.
    pub(super) async fn to_run(
        (args, source): (&NewPlace, &Source),
        context: &App,
    ) -> Result<Self, CommandError> {
        let (me, handle) = args.open(source, context).await?;
        Self::for_runner(&handle, &me).await
    }

    /// Same as [`Self::open`], for an actor who runs jobs too.
    pub(super) async fn to_rerun(args: &ContextArgs, context: &App) -> Result<Self, CommandError> {
        let (me, handle) = args.open(context).await?;
        Self::for_runner(&handle, &me).await
    }

    async fn for_runner(handle: &ContextHandle, me: &Identity) -> Result<Self, CommandError> {
        handle.client(me, Object::Queue, Operation::Pop).await?;
        Self::of(handle, me).await
    }
}

/// A flow to run.
pub(super) enum Source {
    /// The plan of a file.
    File(Box<Plan>),
    /// A deployed flow.
    Deployed(ScheduleName),
}

impl Source {
    /// Reads the file; a name that is no file's is that of a deployed flow.
    pub(super) fn read(file: &Path) -> Result<Self, CommandError> {
        let name = file.to_str().and_then(|name| name.parse().ok());
        match name.filter(|_| !file.exists()) {
            Some(name) => Ok(Self::Deployed(name)),
            None => Ok(Self::File(Box::new(flow::load(file)?))),
        }
    }

    /// Returns the plan.
    pub(super) async fn plan(self, flows: &FlowClient) -> Result<Plan, CommandError> {
        let name = match self {
            Self::File(plan) => return Ok(*plan),
            Self::Deployed(name) => name,
        };
        match flows.deployed(&name).await? {
            Some(plan) => Ok(plan),
            None => Err(not_deployed(&name, Some(flows.context()))),
        }
    }

    /// Sets the inputs of a file, before anything is created. Returns those of a deployed flow.
    pub(super) fn fill(
        &mut self,
        inputs: InputArgs,
        file: &Path,
    ) -> Result<Option<InputArgs>, CommandError> {
        match self {
            Self::File(plan) => inputs.fill(plan, file).map(|()| None),
            Self::Deployed(_) => Ok(Some(inputs)),
        }
    }
}

fn not_deployed(name: &ScheduleName, context: Option<ContextId>) -> CommandError {
    let place = context.map(|id| format!(" in context {id}"));
    CommandError::usage(format_args!(
        "there is no file {name}, and no flow of this name is deployed{}: `meshwork flow list --deployed` lists those that are",
        place.unwrap_or_default()
    ))
}

/// Inputs of a flow.
#[derive(Debug, clap::Args)]
pub(super) struct InputArgs {
    /// Input of the flow; may be given several times
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = super::check::given)]
    set: Vec<(String, String)>,
    /// All inputs as a JSON object: literal JSON, @FILE for the content of a file, or - for stdin
    #[arg(long, value_name = "JSON|@FILE|-", allow_hyphen_values = true)]
    input: Option<InputArg>,
}

impl InputArgs {
    /// Returns them as parameters of the API.
    fn params(self, file: &Path) -> Result<Value, CommandError> {
        let mut inputs = Map::new();
        if let Some(input) = self.input {
            let given = parse_inputs(&input.read(file)?).map_err(CommandError::usage)?;
            inputs.extend(given.into_iter().map(|(name, value)| match value {
                Given::Json(value) => (name, value),
                Given::Text(text) => (name, text.into()),
            }));
        }
        let set: BTreeMap<_, _> = self.set.into_iter().collect();
        Ok(json!({"inputs": inputs, "set": set}))
    }

    /// Sets the inputs in the plan of a file.
    pub(super) fn fill(self, plan: &mut Plan, file: &Path) -> Result<(), CommandError> {
        fill(plan, file, (self.input, self.set))
    }
}

/// Sets inputs in the plan of a file: an object of JSON, then texts by name.
pub(in crate::commands) fn fill(
    plan: &mut Plan,
    file: &Path,
    (input, set): (Option<InputArg>, Vec<(String, String)>),
) -> Result<(), CommandError> {
    let mut given = Vec::new();
    if let Some(input) = input {
        let bytes = input.read(file)?;
        given.extend(parse_inputs(&bytes).map_err(CommandError::usage)?);
    }
    let set = set.into_iter();
    given.extend(set.map(|(name, value)| (name, Given::Text(value))));
    set_inputs(plan, given).map_err(CommandError::usage)
}

/// Returns a new flow as parameters of the API.
pub(super) fn new_flow(
    (place, inputs): (&NewPlace, InputArgs),
    file: &Path,
) -> Result<Map<String, Value>, CommandError> {
    let of = match Source::read(file)? {
        Source::File(_) => texts_of(&flow::texts(file)?),
        Source::Deployed(name) => json!({"deployed": name.as_str()}),
    };
    let mut params = place.params();
    for more in [of, inputs.params(file)?] {
        if let Value::Object(more) = more {
            params.extend(more);
        }
    }
    Ok(params)
}

/// Returns the texts of a flow as parameters of the API.
pub(super) fn texts_of(texts: &FlowTexts) -> Value {
    let FlowTexts { name, text, files } = texts;
    json!({"flow": text, "name": name, "files": files})
}
