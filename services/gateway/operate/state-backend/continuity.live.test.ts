import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { GatewayProcess } from '@plat/testkit/gateway'
import { ADMIN_TOKEN, TestGateways } from '@plat/testkit/postgres/gateways'
import { usePostgres } from '@plat/testkit/postgres/server'
import { until } from '@plat/testkit/until'

const postgres = usePostgres()
const shared = new TestGateways({ postgres, stateBackend: { leader: { retryMillis: 200 } } })
const start = (auditPath: string) => shared.start({ auditPath })
const statusOfCall = async (gateway: GatewayProcess) => (await shared.call(gateway, 's', 'free')).status

async function ready({ url }: GatewayProcess): Promise<string> {
  const response = await fetch(`${url}/readyz`)
  return `${response.status} ${await response.text()}`
}

const PLAT = fileURLToPath(new URL('../../../../apps/cli/bin/plat.mjs', import.meta.url))

/** Runs `plat state adopt` as an operator does. Resolves with what it prints; rejects with its exit code and standard error. */
async function adopt({ url }: GatewayProcess): Promise<string> {
  const env = {
    PLAT_GATEWAY_URL: url,
    PLAT_IDENTITY_URL: url,
    PLAT_BROKER_TOKEN: 'none',
    PLAT_ADMIN_TOKEN: ADMIN_TOKEN,
  }
  const home = join(shared.dir, 'operator')
  await mkdir(join(home, '.plat'), { recursive: true, mode: 0o700 })
  const lines = Object.entries(env).map(([key, value]) => `${key}=${value}\n`)
  await writeFile(join(home, '.plat/env'), lines.join(''), { mode: 0o600 })
  return (await promisify(execFile)(process.execPath, [PLAT, 'state', 'adopt', '-dir', home])).stdout
}

test('when the database becomes an older copy two gateways deny every call until plat state adopt', async () => {
  const path = join(shared.dir, 'one.jsonl')
  const both = [await start(path), await start(join(shared.dir, 'other.jsonl'))] as const
  const [one, other] = both
  const statuses = () => Promise.all(both.map(statusOfCall))
  const arePassing = async () => (await statuses()).every((status) => status === 200)
  await until(arePassing, 'the first calls')
  await postgres.save()
  await until(arePassing, 'calls after the copy')
  await assert.rejects(adopt(one), {
    code: 1,
    stderr: /the state database has lost nothing: there is nothing to adopt/,
  })
  const target = { session: 'default/assistant/gone' }
  const revoke = async () => (await shared.admin(one, 'POST', '/revocations', { target })).status === 201
  await until(revoke, 'a revocation that the copy lacks')
  await postgres.restore()
  await until(
    async () => (await Promise.all(both.map(ready))).every((text) => /^503 .*state database/.test(text)),
    'the reason',
  )
  await until(async () => (await statuses()).every((status) => status === 503), 'the refusals')
  for (let times = 0; times < 5; times++) assert.deepEqual(await statuses(), [503, 503])
  assert.equal(await adopt(other), 'the gateways go on with the state database as it is\n')
  await until(arePassing, 'calls after the adoption')
  await until(async () => (await Promise.all(both.map(ready))).every((text) => text.startsWith('200')), 'both gateways')
  const recorded = await readFile(join(shared.dir, 'other.jsonl'), 'utf8')
  assert.match(recorded, /state:adopt/)
})

test('a gateway does not start on a ledger that ends below the head in the database', async () => {
  const path = join(shared.dir, 'cut.jsonl')
  const first = await start(path)
  await until(async () => (await statusOfCall(first)) === 200, 'a call')
  assert.equal(await statusOfCall(first), 200)
  await shared.close(first)
  const lines = (await readFile(path, 'utf8')).split('\n').slice(0, -1)
  await writeFile(path, `${lines.slice(0, -1).join('\n')}\n`)
  // Who can write the disk can cut the ledger and remove what is beside it.
  await rm(`${path}.head`)
  const last = lines.length - 1
  await assert.rejects(
    start(path),
    new RegExp(
      `cut\\.jsonl ends at record ${last - 1}, but record ${last} was durable \\(its row in "plat"\\.ledger_head`,
    ),
  )
  await writeFile(path, `${lines.join('\n')}\n`)
  assert.equal(await statusOfCall(await start(path)), 200)
})
