import assert from 'node:assert/strict'
import { test } from 'node:test'
import { reasonOf, systemClock } from '@plat/core'
import { createDialer } from '@plat/http'
import { ephemeralSigner } from '@plat/keys'
import { silentLog } from '@plat/process'
import type { EndpointJurisdictions } from '@plat/resources/regions/endpoint'
import { residencyFault, type UpstreamPlacement } from '@plat/resources/sovereignty'
import { issuerKeys, jwksSource, type KeySource } from '@plat/tokens'
import { askToken } from '../../authn/credentials/endpoint.ts'
import { OAuthClient } from '../../authn/token-vault/providers/client.ts'
import { testTarget } from '../../call/testing/call.ts'
import { testIdentity } from '../../call/testing/identity.ts'
import { Collector } from '../../evidence/otel/export/post.ts'
import { Rekor } from '../../evidence/transparency/rekor.ts'
import { sendOnce } from '../../operate/notifications/targets/target.ts'
import { testMetrics } from '../../testing/metrics.ts'
import { createRego } from '../policy/engines/rego.ts'
import { residentDialer } from './dialer.ts'
import { serverOn } from './testing.ts'

test('a notification and a span go only where their jurisdiction complies', async (t) => {
  const server = await serverOn(t, '127.0.0.1')
  const fault = ({ jurisdiction }: { readonly jurisdiction?: string | null | undefined }) =>
    jurisdiction === 'DE' ? null : 'is elsewhere'
  const dialer = residentDialer(createDialer({ log: silentLog }), () => ({ dial: null, fault }))
  t.after(() => dialer.close())
  const outside = { dialer, extraCA: null, clock: systemClock }
  const collector = (jurisdiction: string) =>
    new Collector({ endpoint: server.url, jurisdiction, headersFile: '', caFile: '', exportTimeoutSeconds: 60 }, dialer)
  const message = async () => ({ url: server.url, body: '{}' })
  for (const jurisdiction of ['US', '']) {
    assert.notEqual(await sendOnce(message, { jurisdiction }, outside), 'sent')
    const posted = await collector(jurisdiction).post('{}', new AbortController().signal)
    assert.deepEqual(posted, { kind: 'refused', reason: 'no response from the collector (residency)' })
  }
  assert.equal(server.connections(), 0)
  assert.equal(await sendOnce(message, { jurisdiction: 'DE' }, outside), 'sent')
  await collector('DE').post('{}', new AbortController().signal)
  assert.equal(server.requests(), 2)
})

test('policy engine requests and log checkpoints go only to compliant jurisdictions', async (t) => {
  const server = await serverOn(t, '127.0.0.1')
  const fault = ({ jurisdiction }: { readonly jurisdiction?: string | null | undefined }) =>
    jurisdiction === 'DE' ? null : 'is elsewhere'
  const dialer = residentDialer(createDialer({ log: silentLog }), () => ({ dial: null, fault }))
  t.after(() => dialer.close())
  const signer = ephemeralSigner()
  const outside = { dialer, clock: systemClock, log: silentLog }
  const enter = (jurisdiction: string) =>
    new Rekor({ config: { url: server.url, api: 'v1', timeoutSeconds: 60, jurisdiction }, dialer })
      .enter({ text: 'x', signature: Buffer.from('y'), key: signer.publicKey })
      .catch(reasonOf)
  const question = async (jurisdiction: string, url = server.url) => {
    const rego = { url, timeoutMs: 60_000, enforcement: 'enforce', bearerTokenFile: '', jurisdiction } as const
    const config = { policy: { rego }, policyReloadSeconds: 2 }
    const engine = createRego({ ...outside, config, extraCA: null, metrics: testMetrics() })
    const input = { args: null, identity: testIdentity, target: testTarget, taints: [], method: 'tools/call', now: 0 }
    const allow = {
      action: 'allow',
      policy: null,
      rule: null,
      reason: '',
      revision: '',
      engines: [],
      wouldBe: [],
      rates: [],
    } as const
    return (await engine?.judge({ ...input, sinks: [], tool: null, operation: 'mcp.call' }, allow))?.reason
  }
  for (const jurisdiction of ['US', '']) {
    assert.match(String(await enter(jurisdiction)), /residency/)
  }
  assert.match(String(await question('US')), /residency/)
  assert.equal(server.connections(), 0)
  await enter('DE')
  await question('DE')
  assert.equal(server.requests(), 2)
  // A sidecar runs where the gateway runs.
  await question('')
  assert.equal(server.requests(), 3)
})

const BARS = { requireJurisdiction: true, allowedJurisdictions: ['DE'] }

test('keys and tokens are fetched only from endpoints whose jurisdiction complies', async (t) => {
  const server = await serverOn(t, '127.0.0.1')
  const { port } = new URL(server.url)
  const rules = { dial: null, fault: (place: UpstreamPlacement) => residencyFault({ ...BARS }, place) }
  const lookup = async () => [{ address: '127.0.0.1', family: 4 }]
  const attempts = (origin: string, stated: EndpointJurisdictions) => {
    const dialer = residentDialer(createDialer({ log: silentLog, lookup }), () => rules, stated)
    t.after(() => dialer.close())
    const outside = { dialer, clock: systemClock, log: silentLog }
    const keys = { ...outside, refreshSeconds: 300, algorithms: ['ES256'] as const, caPEM: null, issuer: origin }
    const settings = {
      ...{
        field: 'tokenVault',
        issuer: origin,
        authorizationURL: null,
        tokenURL: '',
        revocationURL: '',
        jwksURL: null,
      },
      ...({ clientID: 'c', clientSecretFile: '', clientAuth: 'post', caFile: '', saysIssuer: false } as const),
    }
    return [
      () => started(jwksSource({ ...outside, url: `${origin}/jwks`, refreshSeconds: 300 })),
      () => started(issuerKeys({ ...keys, jwksURL: '' })),
      () => askToken(dialer, { url: `${origin}/token`, form: new URLSearchParams(), client: null, caPEM: null }),
      () => new OAuthClient(settings, { ...outside, extraCA: null }).request(async () => ({})),
      () => dialer.fetchBytes(`${origin}/sts`, 'cloud', { maxBytes: 1000, timeoutMs: 60_000 }).catch(reasonOf),
    ]
  }
  const away = `http://login.example:${port}`
  const near = `http://127.0.0.1:${port}`
  for (const [origin, stated, isReached] of [
    [away, {}, false],
    [away, { [away]: 'US' }, false],
    [away, { 'http://login.example': 'DE' }, false],
    [away, { [away]: 'DE' }, true],
    [near, {}, true],
    [near, { [near]: 'US' }, false],
    [`http://sts.eu-central-1.amazonaws.com:${port}`, {}, true],
    [`http://sts.us-east-1.amazonaws.com:${port}`, {}, false],
    [`http://pool.auth.us-east-1.amazoncognito.com:${port}`, {}, false],
    [`http://broker.plat.svc:${port}`, {}, true],
    [`http://broker.svc.example:${port}`, {}, false],
  ] as const) {
    for (const [at, attempt] of attempts(origin, stated).entries()) {
      const before = server.requests()
      await attempt()
      assert.equal(server.requests() > before, isReached, `${origin} ${at}`)
    }
  }
})

async function started(source: KeySource): Promise<void> {
  await source.start()
  source.close()
}
