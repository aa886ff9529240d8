import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lease, Leases } from './lease.ts'

/** A backend under test: two replicas with a shared store. For the memory backend both are the same. */
export interface LeaseBackend {
  readonly name: string
  open(): Promise<{ readonly replicas: readonly [Leases, Leases]; close(): Promise<void> }>
  /** Resolves when this time has passed for the backend, in milliseconds. */
  pass(ms: number): Promise<void>
}

/** Longer than any test. */
const LONG_MS = 600_000
const BRIEF_MS = 300

export function leasePromises({ name, open, pass }: LeaseBackend): void {
  let tests = 0
  const promise = (what: string, check: (one: Leases, other: Leases, lease: string) => Promise<void>) =>
    test(`${name}: ${what}`, async () => {
      const { replicas, close } = await open()
      try {
        await check(...replicas, `lease-${++tests}`)
      } finally {
        await close()
      }
    })

  promise('of many that acquire one lease exactly one gets it, across replicas', async (one, other, lease) => {
    const tries = Array.from({ length: 40 }, (_, n) => (n % 2 === 0 ? one : other).acquire(lease, LONG_MS))
    const held = (await Promise.all(tries)).filter((result) => result !== null)
    assert.equal(held.length, 1)
    assert.ok((held[0]?.leftMs() ?? 0) > 0)
  })

  promise('a released lease can be acquired by the other replica', async (one, other, lease) => {
    const held = await acquired(one, lease, LONG_MS)
    assert.equal(await other.acquire(lease, LONG_MS), null)
    await held.release()
    await acquired(other, lease, LONG_MS)
  })

  promise('a lease ends by itself, and its late release does not end the next one', async (one, other, lease) => {
    const lost = await acquired(one, lease, BRIEF_MS)
    await pass(BRIEF_MS + 1)
    assert.ok(lost.leftMs() <= 0)
    await acquired(other, lease, LONG_MS)
    await lost.release()
    assert.equal(await one.acquire(lease, LONG_MS), null)
  })

  promise('leases of other names are independent', async (one, other, lease) => {
    await acquired(one, lease, LONG_MS)
    await acquired(other, `${lease}/a`, LONG_MS)
    await acquired(other, `${lease} \0 ä '; --`, LONG_MS)
  })
}

async function acquired(leases: Leases, name: string, ttlMs: number): Promise<Lease> {
  const lease = await leases.acquire(name, ttlMs)
  assert.ok(lease !== null)
  return lease
}
