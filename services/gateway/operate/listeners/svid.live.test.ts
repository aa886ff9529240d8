import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '@plat/core'
import { type CertificateOptions, createAuthority, type Issued } from '@plat/testkit/authority'
import { tempFolder } from '@plat/testkit/local'
import { startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { certified, keyOf } from '../../testing/certified.ts'
import { started, TOKEN } from '../../testing/started.ts'

const ME = 'spiffe://plat.local/ns/default/agent/assistant/session/s1'
const CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{}}}'

interface SvidResponse {
  readonly status: number
  readonly text: string
  readonly challenge: string
}

/** A gateway over TLS, with a function that calls it with a certificate. */
async function secured(t: TestContext, own: object) {
  const { now, server, clients, files } = await certified()
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}')
  })
  const { gateway, issuer } = await started(t, { tls: { ...files, ...own }, upstreams: { notes: upstream.url } })
  const send = (path: string, init: { body?: string; token: string; svid?: Issued }): Promise<SvidResponse> =>
    new Promise((resolve, reject) => {
      const { svid, body, token } = init
      const headers = {
        authorization: `Bearer ${token}`,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
      }
      const sent = request(gateway.url + path, {
        method: body === undefined ? 'GET' : 'POST',
        headers,
        ca: server.pem,
        servername: 'localhost',
        agent: false,
        ...(svid !== undefined && { cert: svid.pem, key: keyOf(svid) }),
      })
      sent.on('error', reject)
      sent.on('response', async (response) => {
        let text = ''
        for await (const chunk of response) text += chunk
        resolve({
          status: response.statusCode ?? 0,
          text,
          challenge: String(response.headers['www-authenticate'] ?? ''),
        })
      })
      sent.end(body)
    })
  const call = (svid?: Issued, claims: Readonly<Record<string, unknown>> = {}) =>
    send('/mcp/notes', { body: CALL, token: issuer.token(claims), ...(svid && { svid }) })
  const counted = async () => {
    const { text } = await send('/metrics', { token: TOKEN })
    return Object.fromEntries(
      [...text.matchAll(/^plat_gateway_svid_checks_total\{result="(\w+)"\} (\d+)$/gm)].map(([, result, count]) => [
        result,
        Number(count),
      ]),
    )
  }
  return { clients, call, counted, now, gateway }
}

test('a token is accepted only with the certificate of its session, and each check is counted', async (t) => {
  // Shows D3.listen.tls.svidMode.required.
  // Shows D3.listen.tls.certFile, D3.listen.tls.keyFile, D3.listen.tls.clientCAFile, D3.listen.tls.svidMode,
  // D3.metric.plat_gateway_svid_checks_total.
  const { clients, call, counted, now, gateway } = await secured(t, { svidMode: 'required' })
  assert.match(gateway.url, /^https:/)
  const svid = (own: Partial<CertificateOptions>) => clients.issue({ name: 'svid', uris: [ME], ...own })
  assert.equal((await call(await svid({}))).status, 200)
  assert.deepEqual(await counted(), { match: 1 })
  const other = await call(await svid({ uris: [ME.replace('s1', 's2')] }))
  assert.equal(other.status, 401)
  assert.match(other.challenge, /error="invalid_token", error_description="the client certificate belongs to another/)
  assert.equal((await call()).status, 401)
  const strangers = await createAuthority({ name: 'strangers', now })
  const untrusted: readonly Issued[] = [
    await strangers.issue({ name: 'svid', uris: [ME] }),
    await svid({ uris: [ME, `${ME}2`] }),
    await svid({ uris: [] }),
    await svid({ uris: ['https://plat.local/ns/default/agent/assistant/session/s1'] }),
    await svid({ notAfter: now - 1000 }),
    await svid({ ca: true }),
    await svid({ extKeyUsage: ['1.3.6.1.5.5.7.3.1'] }),
    await svid({ uris: [ME.replace('plat.local', 'elsewhere.local')] }),
  ]
  for (const [index, one] of untrusted.entries()) {
    const refused = await call(one)
    assert.equal(refused.status, 401, String(index))
    assert.match(refused.challenge, /not an SVID of a trusted domain/, String(index))
  }
  assert.deepEqual(await counted(), { absent: 1, match: 1, mismatch: 1, untrusted: untrusted.length })
})

test('optional accepts calls without a certificate, and checks a presented one', async (t) => {
  // Shows D3.listen.tls.svidMode.optional.
  const { clients, call } = await secured(t, { svidMode: 'optional' })
  assert.equal((await call()).status, 200)
  assert.equal((await call(await clients.issue({ name: 'svid', uris: [ME] }))).status, 200)
  assert.equal((await call(await clients.issue({ name: 'svid', uris: [ME.replace('s1', 's2')] }))).status, 401)
})

test('off requests no certificate and counts nothing', async (t) => {
  // Shows D3.listen.tls.svidMode.off.
  const { clients, call, counted } = await secured(t, { svidMode: 'off' })
  assert.equal((await call(await clients.issue({ name: 'svid', uris: [ME.replace('s1', 's2')] }))).status, 200)
  assert.deepEqual(await counted(), {})
})

test('a certificate is accepted only for tokens of its trust domain', async (t) => {
  const { clients, call } = await secured(t, { svidMode: 'required' })
  const svid = await clients.issue({ name: 'svid', uris: [ME] })
  assert.equal((await call(svid)).status, 200)
  assert.equal((await call(svid, { sub: ME.replace('plat.local', 'other.local') })).status, 401)
})

test('with several trust domains, an authority without one is not accepted', async (t) => {
  const svidTrustDomains = ['plat.local', 'other.local']
  const nameless = await createAuthority({ name: 'nameless', now: systemClock.now() })
  const clientCAFile = path.join(tempFolder(), 'nameless.pem')
  await writeFile(clientCAFile, nameless.pem)
  const svid = await nameless.issue({ name: 'svid', uris: [ME] })
  const several = await secured(t, { svidMode: 'required', svidTrustDomains, clientCAFile })
  assert.equal((await several.call(svid)).status, 401)
  const one = await secured(t, { svidMode: 'required', svidTrustDomains: ['plat.local'], clientCAFile })
  assert.equal((await one.call(svid)).status, 200)
})

test('only listed trust domains are accepted', async (t) => {
  // Shows D3.listen.tls.svidTrustDomains.
  const refusing = await secured(t, { svidMode: 'required', svidTrustDomains: ['other.local'] })
  assert.equal((await refusing.call(await refusing.clients.issue({ name: 'svid', uris: [ME] }))).status, 401)
  const taking = await secured(t, { svidMode: 'required', svidTrustDomains: ['other.local', 'plat.local'] })
  assert.equal((await taking.call(await taking.clients.issue({ name: 'svid', uris: [ME] }))).status, 200)
})
