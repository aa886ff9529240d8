import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { startAzure } from '@plat/key-services/testing/azure-server'
import { azureEnv } from '@plat/key-services/testing/environments'
import { servicesOf } from '@plat/key-services/testing/services'
import { readPublicKeys } from '@plat/keys'
import { openCapture, verifyLedger } from '@plat/ledger'
import { startGatewayProcess } from '@plat/testkit/gateway'
import { tempFolder } from '@plat/testkit/local'
import { json, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { until } from '@plat/testkit/until'

const ADMIN = 'an-admin-token-of-the-test'

// The vault is a server of this project, written from Microsoft's REST reference: decision 0377.
async function gatewayWith(t: TestContext, azure: Awaited<ReturnType<typeof startAzure>>, config: object) {
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers(json('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'))
  const env = { ...azureEnv(azure.url), PLAT_ADMIN_TOKEN: ADMIN }
  const gateway = await startGatewayProcess({ servers: { notes: upstream.url }, config: { ...config }, env })
  t.after(() => gateway.close())
  return gateway
}

test('a gateway signs checkpoints and encrypts captures with keys in Azure Key Vault, which never leave it', async (t) => {
  // Shows D3.audit.keyURI.azurekv.
  const azure = await startAzure(t)
  azure.add('audit', 'EC')
  azure.add('captures', 'RSA')
  const dir = tempFolder()
  const auditPath = join(dir, 'audit.jsonl')
  const gateway = await gatewayWith(t, azure, {
    auditPath,
    auditCheckpointKey: azure.uri('audit'),
    auditCheckpointEvery: 2,
    captureArgs: { enabled: true, dir: join(dir, 'captures'), key: azure.uri('captures'), namespaces: ['*'] },
  })
  const called = await fetch(`${gateway.url}/mcp/notes`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.token}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
    },
    body: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"text":"hello"}}}',
  })
  assert.equal(called.status, 200, await called.text())
  const headers = { authorization: `Bearer ${ADMIN}` }
  const jwks = await (await fetch(`${gateway.url}/v1/audit/jwks`, { headers })).text()
  assert.ok(!jwks.includes('"d"'), 'only the public half is published')
  const [published] = readPublicKeys(jwks, 'jwks')
  assert.ok(published !== undefined)
  const key = join(dir, 'pub.pem')
  await writeFile(key, published.key.export({ type: 'spki', format: 'pem' }))
  const captures = () =>
    readdirSync(dir, { recursive: true })
      .filter((name) => String(name).endsWith('.cap'))
      .map((name) => join(dir, String(name)))
  await until(() => captures().length === 1, 'the capture')
  const [file = ''] = captures()
  const text = await readFile(file, 'utf8')
  assert.ok(!text.includes('hello'))
  const cipher = await servicesOf(t, azureEnv(azure.url)).openCipher(azure.uri('captures'))
  const capture = await openCapture(text, cipher)
  assert.equal(Buffer.from(capture?.args ?? []).toString(), '{"text":"hello"}')
  await gateway.close()
  const found = await verifyLedger(auditPath, { key, strict: true })
  assert.deepEqual([found.exitCode, found.unproven], [0, 0], found.message)
  const operations = new Set(azure.requests.map((path) => path.split('/').at(-1)))
  assert.ok(operations.has('sign') && operations.has('wrapkey') && operations.has('unwrapkey'), [...operations].join())
})

test('a gateway does not start with a disabled or missing key of a vault; the error is one line', async (t) => {
  const azure = await startAzure(t)
  azure.add('audit', 'EC').enabled = false
  await assert.rejects(gatewayWith(t, azure, { auditCheckpointKey: azure.uri('audit') }), /the key is disabled/)
  await assert.rejects(
    gatewayWith(t, azure, { auditCheckpointKey: azure.uri('none') }),
    /Azure answered 404 KeyNotFound/,
  )
})
