import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { createDialer } from '@plat/http'
import { readPublicJwk } from '@plat/keys'
import { silentLog } from '@plat/process'
import { tempFolder } from '@plat/testkit/local'
import { createVerifier, isFault, jwksSource, KeySet, type Verifier } from '@plat/tokens'
import { json, jsonFile, startTestBroker, type TestBroker } from '../testing/broker.ts'

const STEP_MS = 10_000
/** Life of every token: what it may be at most, so that a retired key is needed as long as it can be. */
const LIFE_MS = 600_000
/** Old enough for a key to be published, to sign, and to be forgotten. */
const ROTATE_EVERY_MS = 1_200_000
const ROTATIONS = 3
/** Midway between two fetches of a client that caches for 300 s. */
const ROTATE_AT_MS = 150_000
const NAMESPACES = ['default', 'red']

async function writeKey(file: string): Promise<void> {
  await fs.writeFile(`${file}.new`, generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }))
  await fs.rename(`${file}.new`, file)
}

async function setUp(t: TestContext) {
  const dir = tempFolder()
  const files = [path.join(dir, 'key.pem'), path.join(dir, 'red.pem')]
  await Promise.all(files.map(writeKey))
  const broker = await startTestBroker(t, {
    signingKey: path.join(dir, 'key.pem'),
    tenantsFile: await jsonFile({ tenants: [{ name: 'red', namespaces: ['red'] }] }),
    tenantKeysDir: dir,
    defaultTtlMs: LIFE_MS,
    maxTtlMs: LIFE_MS,
  })
  return { broker, rotate: () => Promise.all(files.map(writeKey)) }
}

/** Verifies as the gateway does: refreshes the key document periodically, and for an unknown key. */
async function gatewayVerifier(t: TestContext, { clock, identity }: TestBroker): Promise<Verifier> {
  const dialer = createDialer({ log: silentLog })
  const url = `${identity.url}/.well-known/jwks.json`
  const keys = jwksSource({ url, refreshSeconds: 300, dialer, clock, log: silentLog })
  await keys.start()
  t.after(async () => {
    keys.close()
    await dialer.close()
  })
  return createVerifier({ keys, audience: 'plat-gateway', leewaySeconds: 30, clock })
}

/** Verifies like a client that caches the key document as long as its headers allow. */
function cachingVerifier({ clock, identity }: TestBroker) {
  const keys = new KeySet()
  const verifier = createVerifier({ keys, audience: 'plat-gateway', leewaySeconds: 30, clock })
  let fetchedAt = Number.NEGATIVE_INFINITY
  return {
    verifier,
    async refresh() {
      if (clock.now() - fetchedAt < 300_000) return
      fetchedAt = clock.now()
      const { keys: entries } = await json(await fetch(`${identity.url}/.well-known/jwks.json`))
      assert.ok(Array.isArray(entries))
      keys.replace(entries.map(readPublicJwk).flatMap((key) => (key === null ? [] : [[key.kid, key] as const])))
    },
  }
}

test('keys of the broker and of a tenant change under load, and no valid token is ever refused', async (t) => {
  // Shows D1.jwks.retiredKeys, D1.jwks.tenantKeys, D1.jwks.refreshSeconds, D1.jwks.refreshOnUnknownKid.
  const { broker, rotate } = await setUp(t)
  const { clock, mint } = broker
  const gateway = await gatewayVerifier(t, broker)
  const caching = cachingVerifier(broker)
  const live: { readonly token: string; readonly until: number }[] = []
  const kids = new Set<string>()
  const refused: string[] = []
  let verified = 0
  const verify = async (token: string) => {
    for (const [name, verifier] of [
      ['gateway', gateway],
      ['caching', caching.verifier],
    ] as const) {
      const answer = await verifier.verify(token)
      if (isFault(answer)) refused.push(`${name} after ${clock.monotonic()} ms: ${answer.message}`)
      else verified++
    }
  }
  const step = async (elapsedMs: number) => {
    if (elapsedMs % ROTATE_EVERY_MS === ROTATE_AT_MS) await rotate()
    await clock.advance(STEP_MS)
    await new Promise((resolve) => setTimeout(resolve, 2))
    await caching.refresh()
    const minted = await Promise.all(NAMESPACES.map((namespace) => mint({ namespace })))
    for (const { token, kid } of minted) {
      kids.add(kid)
      live.push({ token, until: clock.now() + LIFE_MS })
    }
    while ((live[0]?.until ?? Number.POSITIVE_INFINITY) <= clock.now()) live.shift()
    await Promise.all([...live.slice(0, 4), ...live.slice(-2)].map(({ token }) => verify(token)))
  }
  for (let elapsedMs = 0; elapsedMs < ROTATE_EVERY_MS * ROTATIONS; elapsedMs += STEP_MS) await step(elapsedMs)
  assert.deepEqual(refused, [])
  assert.equal(kids.size, NAMESPACES.length * (ROTATIONS + 1), 'every key signed')
  assert.ok(verified > 3000, `${verified} verified`)
})
