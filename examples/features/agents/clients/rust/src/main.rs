//! The MCP SDK for Rust: takes steps from standard input, and prints what each call returned.
use std::collections::HashMap;
use std::error::Error;
use std::io::stdin;

use rmcp::ServiceExt;
use rmcp::model::{CallToolRequestParams, JsonObject};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde::Deserialize;

#[derive(Deserialize)]
struct Config {
    #[serde(rename = "mcpServers")]
    servers: HashMap<String, Server>,
}

#[derive(Deserialize)]
struct Server {
    url: String,
    #[serde(default)]
    headers: HashMap<String, String>,
}

#[derive(Deserialize)]
struct Step {
    server: String,
    tool: String,
    arguments: JsonObject,
}

async fn call(server: &Server, step: &Step) -> Result<String, Box<dyn Error>> {
    let mut headers = HashMap::new();
    for (name, value) in &server.headers {
        headers.insert(name.parse()?, value.parse()?);
    }
    let config = StreamableHttpClientTransportConfig::with_uri(server.url.as_str()).custom_headers(headers);
    let client = ().serve(StreamableHttpClientTransport::from_config(config)).await?;
    client.list_all_tools().await?;
    loop {
        let request = CallToolRequestParams::new(step.tool.clone()).with_arguments(step.arguments.clone());
        let result = client.call_tool(request).await?;
        let texts = result.content.iter().filter_map(|part| part.as_text());
        let text: String = texts.map(|part| part.text.as_str()).collect();
        if !text.contains("waiting for approval") {
            client.cancel().await?;
            return Ok(text);
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("no configuration")?;
    let config: Config = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let steps: Vec<Step> = serde_json::from_reader(stdin())?;
    let mut texts = Vec::new();
    for step in &steps {
        texts.push(call(&config.servers[&step.server], step).await?);
    }
    println!("{}", serde_json::to_string(&texts)?);
    Ok(())
}
