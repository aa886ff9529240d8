/**
 * Uses another endpoint when the first one of a model fails.
 *
 * Prints:
 *   hello: Hello! I am a scripted model: I answer without an account, and each word is a token.
 *   plat_gateway_model_endpoint_failures_total{route="default.assistant",endpoint="http://127.0.0.1:9"} 1
 */
import { start } from './plat.ts'

await using plat = await start({
  // Nothing listens on port 9.
  model: `
name: scripted-1
endpoint: http://127.0.0.1:9/v1
fallbacks:
  - endpoint: {model}`,
})
const session = await plat.session()
await plat.prompt(session, 'hello')
const metrics = await fetch(`${plat.env.PLAT_GATEWAY_URL}/metrics`).then((response) => response.text())
console.log(metrics.match(/^plat_gateway_model_endpoint_failures_total.*$/m)?.[0])
session.close()
