//! An MCP server on the official Rust SDK with what the conformance suites require by name. Prints its URL.
#![allow(deprecated)]

use std::time::Duration;

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::*,
    service::RequestContext,
    task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions},
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

mod content;

/// Time that short work takes.
const SHORT: Duration = Duration::from_millis(200);

#[derive(Clone)]
struct Conformance {
    tasks: TaskManager,
}

/// Members by which results are recognized.
const RESULTS: &[&str] = &[
    "content",
    "tools",
    "prompts",
    "resources",
    "resourceTemplates",
    "contents",
    "messages",
    "completion",
];

/// Builds a value of the SDK from the JSON of the protocol. The SDK removes `resultType` before revision 2026-07-28.
fn built<T: DeserializeOwned>(mut value: Value) -> T {
    if RESULTS.iter().any(|name| value.get(name).is_some()) && value.get("maxTokens").is_none() {
        value["resultType"] = json!("complete");
    }
    serde_json::from_value(value).expect("the fixture has values of the protocol")
}

fn text(value: &str) -> CallToolResult {
    built(json!({ "content": [{ "type": "text", "text": value }] }))
}

fn asking(requests: Value, state: Option<&str>) -> InputRequiredResult {
    InputRequiredResult::new(Some(built(requests)), state.map(String::from))
}

fn question(message: &str, name: &str) -> Value {
    let schema = json!({ "type": "object", "properties": { name: { "type": "string" } }, "required": [name] });
    json!({ "method": "elicitation/create", "params": { "mode": "form", "message": message, "requestedSchema": schema } })
}

fn sample(question: &str) -> Value {
    let message = json!({ "role": "user", "content": { "type": "text", "text": question } });
    json!({ "method": "sampling/createMessage", "params": { "messages": [message], "maxTokens": 100 } })
}

fn answered(responses: &Option<InputResponses>, names: &[&str]) -> bool {
    let given = responses.as_ref().map(|all| json!(all)).unwrap_or_default();
    names
        .iter()
        .all(|name| given.get(name).is_some_and(Value::is_object))
}

/// Result of a call that asks its client, or that has its answers.
fn round(request: &CallToolRequestParams, caps: &Value) -> Option<CallToolResponse> {
    let responses = &request.input_responses;
    let state = request.request_state.as_deref();
    let once = |requests: Value| -> CallToolResponse {
        let names: Vec<&str> = requests
            .as_object()
            .map(|all| all.keys().map(String::as_str).collect())
            .unwrap_or_default();
        let thanks = || format!("Thank you: {}", json!(responses));
        if answered(responses, &names) {
            text(&thanks()).into()
        } else {
            asking(requests, None).into()
        }
    };
    let stated = |requests: Value, done: &str| -> CallToolResponse {
        if state == Some("asked") {
            text(done).into()
        } else {
            asking(requests, Some("asked")).into()
        }
    };
    let name = || question("What is your name?", "name");
    Some(match request.name.as_ref() {
        "test_input_required_result_elicitation" | "test_streaming_elicitation" => {
            once(json!({ "user_name": name() }))
        }
        "test_input_required_result_sampling" => {
            once(json!({ "capital_question": sample("What is the capital of France?") }))
        }
        "test_input_required_result_list_roots" => {
            once(json!({ "client_roots": { "method": "roots/list" } }))
        }
        "test_missing_capability" => once(json!({ "thought": sample("Say something.") })),
        "test_input_required_result_capabilities" => {
            let mut requests = serde_json::Map::new();
            if !caps["sampling"].is_null() {
                requests.insert("thought".into(), sample("Say something."));
            }
            if !caps["elicitation"].is_null() {
                requests.insert("name".into(), name());
            }
            once(Value::Object(requests))
        }
        "test_input_required_result_request_state"
        | "test_input_required_result_tampered_state" => stated(
            json!({ "confirm": question("Please confirm", "ok") }),
            "state-ok",
        ),
        "test_input_required_result_multiple_inputs" => {
            let requests = json!({ "user_name": name(), "greeting": sample("Generate a greeting"), "client_roots": { "method": "roots/list" } });
            stated(requests, "Thank you for all of it.")
        }
        "test_input_required_result_multi_round" => match state {
            Some("second") => text("Both steps are done.").into(),
            Some(_) => asking(
                json!({ "step2": question("Step 2: What is your favorite color?", "color") }),
                Some("second"),
            )
            .into(),
            None => asking(
                json!({ "step1": question("Step 1: What is your name?", "name") }),
                Some("first"),
            )
            .into(),
        },
        _ => return None,
    })
}

/// Work of a tool that may run as a task.
async fn work(
    name: String,
    args: Value,
    context: Option<TaskContext>,
) -> Result<CallToolResult, TaskExit> {
    let ask = async |keys: &[&str]| -> Result<(), TaskExit> {
        let Some(context) = &context else {
            return Ok(());
        };
        let requests = keys
            .iter()
            .map(|key| context.request_input(*key, built(question("Continue?", "confirm"))));
        for answer in futures::future::join_all(requests).await {
            answer?;
        }
        Ok(())
    };
    match name.as_str() {
        "slow_compute" => {
            let sleep = tokio::time::sleep(Duration::from_millis(
                (args["seconds"].as_f64().unwrap_or(0.0) * 1000.0) as u64,
            ));
            match &context {
                None => sleep.await,
                Some(context) => {
                    tokio::select! { () = context.cancelled() => return Err(TaskExit::Cancelled), () = sleep => {} }
                }
            }
            Ok(text("computed"))
        }
        "failing_job" => {
            tokio::time::sleep(SHORT).await;
            Ok(built(
                json!({ "content": [{ "type": "text", "text": "the job failed" }], "isError": true }),
            ))
        }
        "protocol_error_job" => {
            tokio::time::sleep(SHORT).await;
            Err(TaskExit::Error(ErrorData::internal_error(
                "the job crashed",
                None,
            )))
        }
        "confirm_delete" => {
            ask(&["confirm"]).await?;
            Ok(text("deleted"))
        }
        "multi_input" => {
            ask(&["first", "second"]).await?;
            Ok(text("done"))
        }
        _ => Ok(text(&format!(
            "Hello, {}!",
            args["user"].as_str().unwrap_or("nobody")
        ))),
    }
}

impl Conformance {
    /// Refusals of calls whose client does not support them, or has changed their state.
    fn refusal(request: &CallToolRequestParams, caps: &Value) -> Option<ErrorData> {
        if request.name == "test_missing_capability" && caps["sampling"].is_null() {
            let missing = json!({ "requiredCapabilities": { "sampling": {} } });
            return Some(ErrorData::new(
                ErrorCode(-32021),
                "missing capability",
                Some(missing),
            ));
        }
        let is_tampered = request.name == "test_input_required_result_tampered_state"
            && request
                .request_state
                .as_deref()
                .is_some_and(|state| state != "asked");
        is_tampered.then(|| ErrorData::invalid_params("the state was changed", None))
    }

    /// Requests of a server in revisions with sessions.
    async fn requests(
        &self,
        name: &str,
        cx: &RequestContext<RoleServer>,
    ) -> Option<CallToolResult> {
        let asked = |schema: Value| {
            built(json!({ "mode": "form", "message": "Who are you?", "requestedSchema": schema }))
        };
        let answer = match name {
            "test_sampling" => {
                let params = built(sample("Say something.")["params"].clone());
                let answer = cx
                    .peer
                    .create_message(params)
                    .await
                    .map(|found| json!(found));
                return Some(text(&format!("LLM response: {answer:?}")));
            }
            "test_elicitation" => {
                let texts =
                    json!({ "username": { "type": "string" }, "email": { "type": "string" } });
                cx.peer.create_elicitation(asked(json!({ "type": "object", "properties": texts, "required": ["username", "email"] }))).await
            }
            "test_elicitation_sep1034_defaults" => {
                cx.peer.create_elicitation(asked(content::defaults())).await
            }
            "test_elicitation_sep1330_enums" => {
                cx.peer.create_elicitation(asked(content::choices())).await
            }
            _ => return None,
        };
        Some(text(&format!(
            "User response: {:?}",
            answer.map(|found| json!(found))
        )))
    }

    async fn notifications(
        &self,
        name: &str,
        cx: &RequestContext<RoleServer>,
    ) -> Option<CallToolResult> {
        let progress_token = cx.meta.get_progress_token();
        let meta = json!(cx.meta);
        let is_modern = !meta["io.modelcontextprotocol/protocolVersion"].is_null();
        let logs = !is_modern || !meta["io.modelcontextprotocol/logLevel"].is_null();
        for step in [0, 50, 100] {
            match name {
                "test_tool_with_logging" | "test_logging_tool" => {
                    if !logs {
                        continue;
                    }
                    let message = json!({ "level": "info", "data": format!("Tool at {step} %") });
                    let _ = cx.peer.notify_logging_message(built(message)).await;
                }
                "test_tool_with_progress" => {
                    let Some(token) = &progress_token else {
                        continue;
                    };
                    let progress =
                        json!({ "progressToken": token, "progress": step, "total": 100 });
                    let _ = cx.peer.notify_progress(built(progress)).await;
                }
                _ => return None,
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Some(text("Reported."))
    }

    async fn task(
        &self,
        request: &CallToolRequestParams,
        caps: &Value,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.to_string();
        let declared = !caps["extensions"]["io.modelcontextprotocol/tasks"].is_null();
        if !declared && name != "slow_compute" {
            let missing = json!({ "requiredCapabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } } });
            return Err(ErrorData::new(
                ErrorCode(-32021),
                "missing capability",
                Some(missing),
            ));
        }
        if name == "test_tool_with_task" && request.input_responses.is_none() {
            return Ok(asking(
                json!({ "user_name": question("What is your name?", "name") }),
                None,
            )
            .into());
        }
        let mut args = json!(request.arguments);
        if let Some(responses) = &request.input_responses {
            args = json!({ "user": json!(responses)["user_name"]["content"]["name"] });
        }
        if !declared {
            return work(name, args, None)
                .await
                .map(Into::into)
                .map_err(|_| ErrorData::internal_error("failed", None));
        }
        let options = TaskOptions::new()
            .with_ttl_ms(60_000)
            .with_poll_interval_ms(100);
        let task = self.tasks.spawn(options, move |context| {
            Box::pin(work(name, args, Some(context)))
        });
        Ok(CallToolResponse::Task(CreateTaskResult::new(task)))
    }
}

impl ServerHandler for Conformance {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_logging()
            .enable_completions()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("rust", "1.0.0"))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caps = json!(cx.client_capabilities());
        if let Some(refusal) = Self::refusal(&request, &caps) {
            return Err(refusal);
        }
        if let Some(asked) = round(&request, &caps) {
            return Ok(asked);
        }
        let name = request.name.as_ref();
        if name == "greet" {
            let who = json!(request.arguments)["name"]
                .as_str()
                .unwrap_or("")
                .to_string();
            return Ok(text(&format!("Hello, {who}!")).into());
        }
        if content::TASKS.contains(&name) {
            return self.task(&request, &caps).await;
        }
        if let Some(fixed) = content::fixed(name) {
            return Ok(built::<CallToolResult>(fixed).into());
        }
        if let Some(found) = self.requests(name, &cx).await {
            return Ok(found.into());
        }
        match self.notifications(name, &cx).await {
            Some(found) => Ok(found.into()),
            None => Err(ErrorData::invalid_params("no such tool", None)),
        }
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        content::tools()
            .into_iter()
            .find(|tool| tool["name"] == name)
            .map(built)
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(built(json!({ "tools": content::tools() })))
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(built(json!({ "prompts": content::prompts() })))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name == "test_input_required_result_prompt"
            && !answered(&request.input_responses, &["user_context"])
        {
            return Ok(asking(
                json!({ "user_context": question("What context?", "context") }),
                None,
            )
            .into());
        }
        match content::prompt(&request.name, &json!(request.arguments)) {
            Some(messages) => Ok(built::<GetPromptResult>(json!({ "messages": messages })).into()),
            None => Err(ErrorData::invalid_params("no such prompt", None)),
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(built(json!({ "resources": content::resources() })))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(built(
            json!({ "resourceTemplates": [{ "uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json" }] }),
        ))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match content::resource(&request.uri) {
            Some(contents) => {
                Ok(built::<ReadResourceResult>(json!({ "contents": [contents] })).into())
            }
            None => Err(ErrorData::resource_not_found(
                "no such resource",
                Some(json!({ "uri": request.uri })),
            )),
        }
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Ok(built(
            json!({ "completion": { "values": ["paris", "park", "party"], "total": 3, "hasMore": false } }),
        ))
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.tasks.get_task(&request.task_id)?))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks
            .update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&request.task_id)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tasks = TaskManager::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let config = StreamableHttpServerConfig::default().with_allowed_origins([
        format!("http://{address}"),
        format!("http://localhost:{}", address.port()),
    ]);
    let service: StreamableHttpService<Conformance, LocalSessionManager> =
        StreamableHttpService::new(
            move || {
                Ok(Conformance {
                    tasks: tasks.clone(),
                })
            },
            Default::default(),
            config,
        );
    println!("http://{address}/mcp");
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}
