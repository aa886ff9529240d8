import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { formatProblem } from '@plat/config'
import { TestClock } from '@plat/core'
import {
  ephemeralSigner,
  fileKeys,
  generateKeyFiles,
  KeyServiceError,
  type KeyStore,
  readPublicKeys,
  type Signer,
} from '@plat/keys'
import { silentLog } from '@plat/process'
import { decodeProtectedHeader, importJWK, type JWTPayload, jwtVerify } from 'jose'
import { type Identity, isDenial, unresolved } from '../../call/index.ts'
import { testIdentity } from '../../call/testing/identity.ts'
import { checkGatewayConfig } from '../../config.ts'
import { examples } from '../../testing/configured.ts'
import type { Subject } from './claims.ts'
import type { TxnTokensConfig } from './config.ts'
import { createTxnTokens, type TxnTokens } from './index.ts'

const dir = await mkdtemp(path.join(tmpdir(), 'plat-'))
let keyPath = ''
let publicKey: Parameters<typeof importJWK>[0]

before(async () => {
  const made = await generateKeyFiles(dir)
  keyPath = made.keyPath
  const [found] = readPublicKeys(await readFile(made.pubPath, 'utf8'), 'pub')
  publicKey = { ...(found ?? assert.fail()).jwk }
})
after(() => rm(dir, { recursive: true, force: true }))

const planner: Subject = {
  id: 'spiffe://plat.local/ns/team/agent/planner/session/p1',
  act: { sub: 'spiffe://plat.local/ns/team/agent/boss/session/b1', act: { sub: 'user:ada' } },
}
const clock = new TestClock()
const caller: Identity = { ...testIdentity, namespace: 'team', agent: 'planner', expiresAt: clock.now() + 900_000 }

interface Setup {
  readonly config?: Partial<TxnTokensConfig>
  readonly subject?: Subject | null
  readonly taints?: readonly string[]
  readonly keys?: KeyStore
}

async function start({ config = {}, subject = planner, taints = [], keys }: Setup = {}): Promise<TxnTokens> {
  const txnTokens = {
    mode: 'add',
    signingKey: keyPath,
    issuer: 'plat-gateway',
    audience: 'plat.local',
    workloadID: '',
    ttlSeconds: 60,
    ...config,
  } as const
  const made = await createTxnTokens({
    config: { txnTokens },
    subjectOf: () => subject,
    labelsOf: () => taints,
    clock,
    log: silentLog,
    ...(keys !== undefined && { keys }),
  })
  return made ?? assert.fail('the mode is not off')
}

/** Reads a token as an agent that trusts the gateway's key, with an independent library. */
async function read(tokens: TxnTokens, identity: Partial<Identity> = {}, id = 'call-1'): Promise<JWTPayload> {
  const target = { ...unresolved, kind: 'a2a', server: 'a2a/team/helper', key: 'a2a/team/helper' } as const
  const token = await tokens.token({ id, facts: { identity: { ...caller, ...identity }, target } })
  assert.ok(!isDenial(token))
  const { payload } = await jwtVerify(token, await importJWK(publicKey, 'EdDSA'), {
    algorithms: ['EdDSA'],
    typ: 'txntoken+jwt',
    audience: 'plat.local',
    currentDate: new Date(clock.now()),
  })
  const { kid } = decodeProtectedHeader(token)
  assert.ok(kid !== undefined)
  return payload
}

test('a called agent reads the caller, its user and the call', async () => {
  // Shows D3.txnTokens.signingKey, D3.txnTokens.issuer, D3.txnTokens.audience, D3.txnTokens.workloadID,
  // D3.default.computed.txnTokens.workloadID and D3.limit.txnTokenLifetime.
  const tokens = await start({ taints: ['secret', 'document'] })
  const groups = ['staff', 'on-call']
  const ancestors = ['jti-of-boss', 'jti-of-the-first']
  const issuedAt = Math.floor(clock.now() / 1000)
  assert.deepEqual(await read(tokens, { jti: 'jti-of-planner', groups, verified: 'idToken', ancestors }), {
    iss: 'plat-gateway',
    aud: 'plat.local',
    iat: issuedAt,
    exp: issuedAt + 60,
    txn: 'call-1',
    sub: planner.id,
    scope: 'agents:team/helper',
    req_wl: 'spiffe://plat.local/plat/gateway',
    act: planner.act,
    tctx: { jti: 'jti-of-planner', target: 'team/helper', call: 'call-1' },
    plat_groups: 'staff on-call',
    plat_principal_verified: 'idToken',
    plat_inherited_taints: 'secret document',
    plat_delegation_jtis: ancestors,
  })
})

test('the token has the configured claims and no empty ones', async () => {
  // Shows D3.txnTokens.ttlSeconds.
  const config = { issuer: 'edge-gateway', workloadID: 'spiffe://plat.local/edge', ttlSeconds: 300 }
  const tokens = await start({ config, subject: { id: planner.id, act: undefined } })
  const payload = await read(tokens)
  assert.deepEqual(
    [payload.iss, payload.req_wl, (payload.exp ?? 0) - (payload.iat ?? 0)],
    ['edge-gateway', 'spiffe://plat.local/edge', 300],
  )
  for (const absent of [
    'act',
    'plat_groups',
    'plat_principal_verified',
    'plat_inherited_taints',
    'plat_delegation_jtis',
  ]) {
    assert.ok(!(absent in payload), absent)
  }
})

test('a transaction token does not outlive the session of its caller', async () => {
  const { exp } = await read(await start(), { expiresAt: clock.now() + 20_500 })
  assert.equal(exp, Math.floor((clock.now() + 20_500) / 1000))
})

test('each call is a separate transaction', async () => {
  const tokens = await start()
  const { txn: first } = await read(tokens, {}, 'call-1')
  const { txn: second } = await read(tokens, {}, 'call-2')
  assert.deepEqual([first, second], ['call-1', 'call-2'])
})

test('a call is refused if its caller is not a session of the broker', async () => {
  const tokens = await start({ subject: null })
  const answer = tokens.token({ id: 'c', facts: { identity: caller, target: unresolved } })
  assert.equal(isDenial(answer) && answer.code, 'internal')
})

test('mode off makes no tokens and reads no key', async () => {
  // Shows D3.txnTokens.mode.off.
  const config = {
    mode: 'off',
    signingKey: '/nowhere',
    issuer: '',
    audience: '',
    workloadID: '',
    ttlSeconds: 60,
  } as const
  assert.equal(
    await createTxnTokens({
      config: { txnTokens: config },
      subjectOf: () => null,
      labelsOf: () => [],
      clock,
      log: silentLog,
    }),
    null,
  )
})

test('a key that is not an Ed25519 key stops the start with its name', async (t: TestContext) => {
  const file = path.join(dir, 'p256.json')
  const { subtle } = globalThis.crypto
  const pair = await subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify'])
  await writeFile(file, JSON.stringify(await subtle.exportKey('jwk', pair.privateKey)))
  t.after(() => rm(file))
  await assert.rejects(start({ config: { signingKey: file } }), /txnTokens\.signingKey: must be an Ed25519 key/)
  await assert.rejects(
    start({ config: { signingKey: path.join(dir, 'none.pem') } }),
    /txnTokens\.signingKey: .*none\.pem: cannot be read/,
  )
})

const least = {
  policyFile: '/p',
  auditPath: '/a',
  upstreamsFile: '/u',
  identity: { publicKeyFiles: ['/k'] },
  a2a: { routesFile: '/routes.json' },
}

function problems(more: object): string[] {
  const { problems: found } = checkGatewayConfig(JSON.stringify({ ...least, ...more }), { exists: () => true })
  return found.map(formatProblem)
}

test('the configuration is checked before the start', () => {
  const good = { mode: 'replace', signingKey: '/key.pem', audience: 'plat.local' }
  assert.deepEqual(problems({ txnTokens: good }), [])
  assert.deepEqual(problems({ txnTokens: { ...good, audience: 'https://plat.local' } }), [
    'txnTokens.audience: must be a trust domain such as plat.local: lower-case letters, digits, ".", "_" and "-"',
  ])
  assert.deepEqual(problems({ txnTokens: { ...good, ttlSeconds: 301 } }), [
    'txnTokens.ttlSeconds: must be from 1 to 300, got 301',
  ])
  const unreachable = problems({ txnTokens: good, a2a: {} })
  assert.deepEqual(unreachable, ['warning: txnTokens.mode: no agent can be called: a2a.routesFile is not set'])
})

test('the gateway.json of docs/transaction-tokens.md is valid', () => {
  const [example] = examples('transaction-tokens.md', 'json')
  assert.deepEqual(problems(JSON.parse(example)), [])
})

test('with a key of a key service a token is signed later, and refused while the service does not sign', async () => {
  const local = ephemeralSigner()
  const callers: unknown[] = []
  let failure: Error | null = null
  const remote: Signer = {
    ...local,
    async sign(bytes, of) {
      callers.push(of)
      if (failure !== null) throw failure
      return local.sign(bytes)
    },
  }
  const tokens = await start({ keys: { ...fileKeys, openSigner: async () => remote } })
  const target = { ...unresolved, kind: 'a2a', server: 'a2a/team/helper', key: 'a2a/team/helper' } as const
  const result = async () => {
    const token = await tokens.token({ id: 'call-1', facts: { identity: caller, target } })
    return isDenial(token) ? token.code : decodeProtectedHeader(token).kid
  }
  assert.equal(await result(), local.kid)
  assert.deepEqual(callers, [`${caller.namespace}/${caller.agent}`], 'each agent has its share of the queue')
  failure = new KeyServiceError('overloaded', 'full')
  assert.equal(await result(), 'overloaded')
  failure = new KeyServiceError('unavailable', 'no response')
  assert.equal(await result(), 'state_unavailable')
  failure = new Error('a bug')
  assert.equal(await result(), 'state_unavailable')
})
