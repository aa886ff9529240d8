import assert from 'node:assert/strict'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { json, type ScriptedUpstream, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { until } from '@plat/testkit/until'

let dir = ''
let gateway: GatewayProcess
let upstream: ScriptedUpstream

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'plat-'))
  upstream = await startScriptedUpstream()
  upstream.answers(json('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'))
  await writeList([])
  gateway = await startGatewayProcess({
    servers: { notes: upstream.url },
    config: { revocationsFile: join(dir, 'revocations.json'), revocationsRecheckMillis: 20 },
  })
})

after(async () => {
  await gateway.close()
  await upstream.close()
  await rm(dir, { recursive: true })
})

async function writeList(targets: readonly object[]): Promise<void> {
  const createdAt = new Date().toISOString()
  const revocations = targets.map((target, n) => ({ id: `r${n}`, target, mode: 'revoke', reason: '', createdAt }))
  await writeFile(join(dir, 'new.json'), JSON.stringify({ version: 1, revocations }))
  await rename(join(dir, 'new.json'), join(dir, 'revocations.json'))
}

async function refused(token: string): Promise<boolean> {
  const response = await fetch(`${gateway.url}/mcp/notes`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
    },
    body: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{}}}',
  })
  return (await response.text()).includes('"error":"revoked"')
}

test('revoking a token revokes every token derived from it, and no other', async () => {
  // Shows D1.claim.plat_parent_jti and D1.claim.plat_delegator_jti.
  const { issuer } = gateway
  const act = { sub: 'spiffe://plat.local/ns/default/agent/planner/session/p', act: { sub: 'user:ada' } }
  const family: readonly [string, string][] = [
    ['the token itself', issuer.token({ jti: 'root' })],
    ['an exchanged token', issuer.token({ plat_parent_jti: 'root' })],
    ['a delegated token', issuer.token({ act, plat_delegator_jti: 'root', plat_delegation_jtis: ['root'] })],
    [
      'one that was delegated again',
      issuer.token({ act, plat_delegator_jti: 'mid', plat_delegation_jtis: ['root', 'mid'] }),
    ],
  ]
  const stranger = issuer.token({ jti: 'other', plat_parent_jti: 'roots' })
  const everybody: readonly string[] = [stranger, ...family.map(([, token]) => token)]
  assert.deepEqual(await Promise.all(everybody.map(refused)), [false, false, false, false, false])
  await writeList([{ jti: 'root' }])
  for (const [name, token] of family) await until(() => refused(token), `${name} still passes`)
  assert.equal(await refused(stranger), false)
  await writeList([])
  for (const [name, token] of family) await until(async () => !(await refused(token)), `${name} is still refused`)
})
