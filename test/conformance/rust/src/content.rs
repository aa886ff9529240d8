//! Fixed content that the conformance suites require by name.

use serde_json::{Value, json};

/// A picture of one pixel (PNG), and a sound without samples (WAV).
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const SILENCE: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

pub const TASKS: &[&str] = &[
    "slow_compute",
    "failing_job",
    "protocol_error_job",
    "confirm_delete",
    "multi_input",
    "test_tool_with_task",
];

const PLAIN: &[&str] = &[
    "greet",
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_tool_with_logging",
    "test_logging_tool",
    "test_tool_with_progress",
    "test_reconnection",
    "test_sampling",
    "test_elicitation",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_input_required_result_capabilities",
    "test_input_required_result_request_state",
    "test_input_required_result_tampered_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
];

pub fn tools() -> Vec<Value> {
    let plain = PLAIN.iter().chain(TASKS).map(|name| {
        json!({ "name": name, "description": format!("Fixture {name}"), "inputSchema": { "type": "object", "properties": {} } })
    });
    let address = json!({
        "$anchor": "addressDef", "type": "object", "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
    });
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": address },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    });
    let mirrored = json!({
        "type": "object",
        "properties": { "region": { "type": "string", "x-mcp-header": "Region" }, "query": { "type": "string" } },
        "required": ["region"],
    });
    let more = [
        json!({ "name": "json_schema_2020_12_tool", "description": "Tool with JSON Schema 2020-12 features", "inputSchema": schema }),
        json!({ "name": "test_x_mcp_header", "description": "A mirrored parameter", "inputSchema": mirrored }),
    ];
    plain.chain(more).collect()
}

fn embedded(uri: &str, mime_type: &str, text: &str) -> Value {
    json!({ "type": "resource", "resource": { "uri": uri, "mimeType": mime_type, "text": text } })
}

/// Result of a tool that always responds the same.
pub fn fixed(name: &str) -> Option<Value> {
    let content = match name {
        "test_simple_text" => {
            json!([{ "type": "text", "text": "This is a simple text response for testing." }])
        }
        "test_image_content" => {
            json!([{ "type": "image", "data": PIXEL, "mimeType": "image/png" }])
        }
        "test_audio_content" => {
            json!([{ "type": "audio", "data": SILENCE, "mimeType": "audio/wav" }])
        }
        "test_embedded_resource" => json!([embedded(
            "test://embedded-resource",
            "text/plain",
            "This is an embedded resource content."
        )]),
        "test_multiple_content_types" => json!([
            { "type": "text", "text": "Multiple content types test:" },
            { "type": "image", "data": PIXEL, "mimeType": "image/png" },
            embedded("test://mixed-content-resource", "application/json", "{\"test\":\"data\",\"value\":123}"),
        ]),
        "test_reconnection" | "json_schema_2020_12_tool" | "test_x_mcp_header" => {
            json!([{ "type": "text", "text": "ok" }])
        }
        "test_error_handling" => {
            let text = "This tool intentionally returns an error for testing";
            return Some(json!({ "content": [{ "type": "text", "text": text }], "isError": true }));
        }
        _ => return None,
    };
    Some(json!({ "content": content }))
}

pub fn prompts() -> Value {
    let required = |name: &str| json!({ "name": name, "required": true });
    json!([
        { "name": "test_simple_prompt", "description": "A prompt without arguments" },
        { "name": "test_prompt_with_arguments", "description": "Two arguments", "arguments": [required("arg1"), required("arg2")] },
        { "name": "test_prompt_with_embedded_resource", "description": "Embeds a resource", "arguments": [required("resourceUri")] },
        { "name": "test_prompt_with_image", "description": "A prompt with a picture" },
        { "name": "test_input_required_result_prompt", "description": "A prompt that needs an answer" },
    ])
}

pub fn prompt(name: &str, args: &Value) -> Option<Value> {
    let user = |content: Value| json!({ "role": "user", "content": content });
    let says = |text: String| user(json!({ "type": "text", "text": text }));
    let argument = |name: &str| args[name].as_str().unwrap_or("").to_string();
    Some(match name {
        "test_simple_prompt" => json!([says("This is a simple prompt for testing.".into())]),
        "test_prompt_with_arguments" => {
            json!([says(format!(
                "Prompt with arguments: arg1='{}', arg2='{}'",
                argument("arg1"),
                argument("arg2")
            ))])
        }
        "test_prompt_with_embedded_resource" => json!([
            user(embedded(
                &argument("resourceUri"),
                "text/plain",
                "Embedded resource content for testing."
            )),
            says("Please process the embedded resource above.".into()),
        ]),
        "test_prompt_with_image" => json!([
            user(json!({ "type": "image", "data": PIXEL, "mimeType": "image/png" })),
            says("Please analyze the image above.".into()),
        ]),
        "test_input_required_result_prompt" => json!([says("In the given context.".into())]),
        _ => return None,
    })
}

pub fn resources() -> Value {
    json!([
        { "uri": "test://static-text", "name": "static-text", "description": "A text", "mimeType": "text/plain" },
        { "uri": "test://static-binary", "name": "static-binary", "description": "A picture", "mimeType": "image/png" },
        { "uri": "test://watched-resource", "name": "watched-resource", "description": "To subscribe to", "mimeType": "text/plain" },
    ])
}

pub fn resource(uri: &str) -> Option<Value> {
    Some(match uri {
        "test://static-text" => {
            json!({ "uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource." })
        }
        "test://static-binary" => json!({ "uri": uri, "mimeType": "image/png", "blob": PIXEL }),
        "test://watched-resource" => {
            json!({ "uri": uri, "mimeType": "text/plain", "text": "watched" })
        }
        _ => {
            let id = uri
                .strip_prefix("test://template/")?
                .strip_suffix("/data")?;
            let text =
                json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") })
                    .to_string();
            json!({ "uri": uri, "mimeType": "application/json", "text": text })
        }
    })
}

/// A form whose fields have defaults.
pub fn defaults() -> Value {
    json!({ "type": "object", "properties": {
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true },
    } })
}

/// A form with every kind of choice.
pub fn choices() -> Value {
    let plain = json!(["option1", "option2", "option3"]);
    let titled =
        json!([{ "const": "value1", "title": "First" }, { "const": "value2", "title": "Second" }]);
    json!({ "type": "object", "properties": {
        "untitledSingle": { "type": "string", "enum": plain },
        "titledSingle": { "type": "string", "oneOf": titled },
        "legacyEnum": { "type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"] },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": plain } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled } },
    } })
}
