import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { createDialer } from '@plat/http'
import { silentLog } from '@plat/process'
import { memoryOnceSets } from '@plat/state'
import type { Proof, ProofCheck, ProofContext, Substrate } from '../check.ts'
import { createFirstUse } from '../parts/first-use.ts'

/** The session that the tests mint. */
export const context: ProofContext = {
  namespace: 'default',
  agent: 'assistant',
  session: 's1',
  clientCertificate: null,
}

/** A nonce of the form that the broker issues. */
export const NONCE = 'K7WJ2MZQ4XH3T6YBRNDCVEGPA5FLSU2I'

/** A proof with nothing in it but what is given. */
export function proofOf(check: string, members: Partial<Proof>): Proof {
  const empty = { sandbox: null, nonce: null, token: null, document: null, signature: null, format: null, x5c: [] }
  return { check, ...empty, evidence: undefined, ...members }
}

/** Dependencies of a check, on a clock of the test. */
export function testParts() {
  const clock = new TestClock()
  return {
    clock,
    log: silentLog,
    dialer: createDialer({ clock, log: silentLog }),
    firstUse: createFirstUse(memoryOnceSets(clock)),
  }
}

/** One question to a check. */
export interface Attempt {
  readonly check: ProofCheck
  readonly proof: Proof
  readonly context?: ProofContext
}

type ProofRequest = () => Attempt | Promise<Attempt>

/** Promises of every check. Attempts are independent of each other. */
export interface Subject {
  readonly name: string
  readonly accepted: ProofRequest
  /** Exactly what the accepted proof establishes. */
  readonly substrate: Substrate
  /** The accepted proof again: for another session, or with another nonce. */
  readonly replayed: () => Promise<readonly [Attempt, Attempt]>
  readonly tampered: ProofRequest
  readonly wrongAnchor: ProofRequest
  readonly expired: ProofRequest
  readonly unreachable: ProofRequest
  /** Further proofs that must fail, and words of the reason. */
  readonly refused: Readonly<Record<string, { readonly ask: ProofRequest; readonly reason: RegExp }>>
}

/** The conformance suite of proof checks. */
export function proofCheckSuite(subject: Subject): void {
  const { name } = subject
  const fails = async (ask: ProofRequest, reason: RegExp) => {
    const verdict = await judge(await ask())
    assert.equal(verdict.kind, 'failed', JSON.stringify(verdict))
    assert.match(verdict.kind === 'failed' ? verdict.reason : '', reason)
  }
  test(`${name}: a good proof establishes exactly what it shows`, async () => {
    assert.deepEqual(await judge(await subject.accepted()), { kind: 'established', substrate: subject.substrate })
  })
  test(`${name}: a proof that served once serves no other mint`, async () => {
    const [first, again] = await subject.replayed()
    assert.equal((await judge(first)).kind, 'established')
    await fails(() => again, /./)
  })
  test(`${name}: a changed proof fails`, () => fails(subject.tampered, /signature|certificate|content|document|token/))
  test(`${name}: a proof under an anchor that is not trusted fails`, () =>
    fails(subject.wrongAnchor, /trust|signature|anchor|authenticate/))
  test(`${name}: an expired proof fails`, () => fails(subject.expired, /expired|too old|authenticate/))
  test(`${name}: nothing is established while the anchors cannot be reached`, async () => {
    assert.equal((await judge(await subject.unreachable())).kind, 'unreachable')
  })
  for (const [what, { ask, reason }] of Object.entries(subject.refused)) {
    test(`${name}: ${what} fails`, () => fails(ask, reason))
  }
}

function judge({ check, proof, context: requested = context }: Attempt) {
  assert.equal(proof.check, check.name)
  return check.verify(proof, requested)
}
