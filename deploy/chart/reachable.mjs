// Run by `helm test` in a pod: both services are ready, the broker publishes a key, and a call without a token is refused.
const gateway = process.env.PLAT_GATEWAY_URL
const identity = process.env.PLAT_IDENTITY_URL

async function check(what, url, fits) {
  const response = await fetch(url, { signal: AbortSignal.timeout(60_000) })
  const text = await response.text()
  if (!fits(response, text)) throw new Error(`${what}: ${url} answered ${response.status} ${text.slice(0, 200)}`)
  console.log(`ok ${what}`)
}

await check('the broker is ready', `${identity}/readyz`, ({ status }) => status === 200)
await check(
  'the broker publishes a key',
  `${identity}/.well-known/jwks.json`,
  (_, text) => JSON.parse(text).keys.length > 0,
)
await check('the gateway is ready', `${gateway}/readyz`, ({ status }) => status === 200)
await check('the gateway requires a token', `${gateway}/mcp/none`, ({ status }) => status === 401)
