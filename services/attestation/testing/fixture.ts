import assert from 'node:assert/strict'
import { renameSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { TestContext } from 'node:test'
import { isObject, systemClock, systemIds, TestClock } from '@plat/core'
import { createDialer } from '@plat/http'
import type { Log } from '@plat/process'
import { createAuthority, type Issued } from '@plat/testkit/authority'
import { type TestProver, testProver } from '@plat/testkit/dpop'
import { startTestIdentity, type TestIdentity } from '@plat/testkit/identity'
import { tempFolder } from '@plat/testkit/local'
import { type SnpOptions, snpReport } from '@plat/testkit/tee/snp'
import { boundNonce, type Members } from '@plat/tokens'
import { type Attestation, type StartAttestationOptions, startAttestation } from '../index.ts'

export const SERVICE_TOKEN = 'attestation-secret'
/** Measurement of the test machines, accepted by the broker. */
export const GOOD = 'ab'.repeat(48)
export const OTHER = 'cd'.repeat(48)
const HOUR_MS = 3_600_000

/** Vendor, broker and what it reads: made once for all tests of a file. */
export interface AttestationParties {
  readonly broker: TestIdentity
  readonly vendor: Issued
  readonly stranger: Issued
  /** Replaces the broker's list of revocations. */
  revoke(target: Members | null, mode?: 'revoke' | 'suspend'): void
}

/** Creates a vendor of machines, and a broker in a separate process that trusts it and issues tokens of tier-2 for evidence only. */
export async function createParties(): Promise<AttestationParties> {
  const dir = tempFolder()
  const now = systemClock.now()
  const vendor = await createAuthority({ name: 'ARK', key: 'RSA', now })
  const stranger = await createAuthority({ name: 'ARK', key: 'RSA', now })
  const [roots, revocationsFile] = [path.join(dir, 'amd.pem'), path.join(dir, 'revocations.json')]
  writeFileSync(roots, vendor.pem)
  const revoke: AttestationParties['revoke'] = (target, mode = 'revoke') => {
    const entry = { id: 'r1', createdAt: '2026-01-01T00:00:00Z', target, mode, reason: 'test', expiresAt: null }
    writeFileSync(`${revocationsFile}.new`, JSON.stringify({ version: 1, revocations: target === null ? [] : [entry] }))
    renameSync(`${revocationsFile}.new`, revocationsFile)
  }
  revoke(null)
  const measurements = [GOOD, OTHER].map((hex) => `sev-snp:${hex}`).join(',')
  const broker = await startTestIdentity([
    ...['-identity-checks', 'tee', '-tee-snp-roots', roots, '-tee-measurements', measurements],
    ...['-attested-tiers', 'tier-2', '-revocations-file', revocationsFile],
  ])
  return { broker, vendor, stranger, revoke }
}

export interface AttestationResponse {
  readonly status: number
  readonly headers: Headers
  readonly body: Members
}

/** The service in this process on a test clock, with a broker in a separate process. */
export interface AttestationFixture {
  readonly service: Attestation
  readonly clock: TestClock
  readonly lines: readonly string[]
  /** With the service's token, unless `headers` says otherwise. */
  post(where: string, body: unknown, headers?: Readonly<Record<string, string>>): Promise<AttestationResponse>
  /** A new release of a session, by its id. */
  release(session: string, more?: object): Promise<string>
  /** Creates a machine with a new key, or with the given one. */
  workload(releaseId: string, prover?: TestProver): Workload
  /** Value of a series, labels included; null: it is not there. */
  metric(series: string): Promise<number | null>
}

/** A machine with a key, and its requests. */
export interface Workload {
  readonly prover: TestProver
  challenge(check?: string): Promise<AttestationResponse>
  /** A proof over a nonce, or over a fresh one. `overrides` changes the evidence. */
  prove(overrides?: Partial<SnpOptions>): Promise<Members>
  redeem(proof?: Members): Promise<AttestationResponse>
  renew(token: string, proof?: Members): Promise<AttestationResponse>
}

export function terms(session: string): Members {
  return {
    session: { namespace: 'team', agent: 'assistant', session, tier: 'tier-2', scopes: ['tools:notes'], user: 'ada' },
    checks: ['tee'],
    digests: [GOOD],
    isolation: 'tee',
  }
}

export async function startFixture(
  t: TestContext,
  fixture: AttestationParties,
  options: Partial<StartAttestationOptions> = {},
): Promise<AttestationFixture> {
  // Of this moment: the tokens of the broker are.
  const clock = new TestClock(systemClock.now())
  const lines: string[] = []
  const line = (fields: object, message: string) => void lines.push(JSON.stringify({ ...fields, message }))
  const log: Log = { debug: line, info: line, warn: line, error: line, child: () => log }
  const dialer = createDialer({ clock: systemClock, log })
  t.after(() => dialer.close())
  const service = await startAttestation({
    listen: '127.0.0.1:0',
    brokerUrl: fixture.broker.url,
    env: { PLAT_ATTESTATION_TOKEN: SERVICE_TOKEN, PLAT_BROKER_TOKEN: fixture.broker.brokerToken },
    dialer,
    clock,
    ids: systemIds(clock),
    log,
    ...options,
  })
  t.after(() => service.close())
  const post: AttestationFixture['post'] = (where, body, headers = { authorization: `Bearer ${SERVICE_TOKEN}` }) =>
    send(service.url + where, { headers, body })
  return {
    service,
    clock,
    lines,
    post,
    async release(session, more = {}) {
      const { status, body } = await post('/v1/releases', { ...terms(session), ...more })
      assert.equal(status, 200, JSON.stringify(body))
      return text(body.releaseId)
    },
    workload: (releaseId, prover = testProver({ clock })) =>
      workload({ fixture: fixture, post, url: service.url, prover }, releaseId),
    async metric(series) {
      const exposed = await (await fetch(`${service.url}/metrics`)).text()
      const found = exposed.split('\n').find((each) => each.startsWith(`${series} `))
      return found === undefined ? null : Number(found.slice(series.length + 1))
    },
  }
}

/** Calls the broker directly, with the broker token. */
export function askBroker({ broker }: AttestationParties, where: string, body: object): Promise<AttestationResponse> {
  return send(broker.url + where, { headers: { authorization: `Bearer ${broker.brokerToken}` }, body })
}

async function send(
  url: string,
  { headers, body }: { readonly headers: Readonly<Record<string, string>>; readonly body: unknown },
): Promise<AttestationResponse> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  const value: unknown = await response.json()
  assert.ok(isObject(value))
  return { status: response.status, headers: response.headers, body: value }
}

interface Parts {
  readonly fixture: AttestationParties
  readonly post: AttestationFixture['post']
  readonly url: string
  readonly prover: TestProver
}

function workload({ fixture, post, url, prover }: Parts, releaseId: string): Workload {
  const ask = (where: string, body: object, token: string | null = null) =>
    post(where, body, {
      dpop: prover.proof(url + where, token),
      ...(token !== null && { authorization: `DPoP ${token}` }),
    })
  const challenge = (check = 'tee') => ask('/v1/challenge', { releaseId, check })
  const prove: Workload['prove'] = async (overrides = {}) => {
    const nonce = overrides.nonce ?? (await ownNonce(challenge, prover.jkt))
    const now = systemClock.now()
    const machine = { by: fixture.vendor, measurement: GOOD, now, certificate: { notAfter: now + HOUR_MS } }
    const { report, x5c } = await snpReport({ ...machine, ...overrides, nonce })
    const evidence = { kind: 'sev-snp', report: report.toString('base64'), certificate: x5c }
    return { check: 'tee', nonce, evidence }
  }
  return {
    prover,
    challenge,
    prove,
    redeem: async (proof) => ask('/v1/redeem', { releaseId, proof: proof ?? (await prove()) }),
    renew: async (token, proof) => ask('/v1/renew', { releaseId, proof: proof ?? (await prove()) }, token),
  }
}

/** A workload creates evidence only over a nonce that includes its key. */
async function ownNonce(challenge: () => Promise<AttestationResponse>, jkt: string): Promise<string> {
  const { status, body } = await challenge()
  assert.equal(status, 200, JSON.stringify(body))
  assert.equal(body.nonce, boundNonce(text(body.salt), jkt))
  return text(body.nonce)
}

/** Empty for what is not text. */
export function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** The claims in a token, unverified. */
export function claimsIn(token: unknown): Members {
  const claims: unknown = JSON.parse(Buffer.from(text(token).split('.')[1] ?? '', 'base64url').toString())
  assert.ok(isObject(claims))
  return claims
}
