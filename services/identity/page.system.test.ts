import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { freePort } from '@plat/testkit/local'

// Needs bash, curl and OpenSSL, as the page says.
const ROOT = path.resolve(import.meta.dirname, '../..')
const PAGE = readFileSync(path.join(ROOT, 'docs/identity.md'), 'utf8')

/** Runs shell commands in the repository, then stops processes and removes files that they left. */
async function run(script: string): Promise<{ readonly status: unknown; readonly stated: string }> {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'plat-'))
  const options = { cwd: ROOT, detached: true, env: { ...process.env, TMPDIR: dir } }
  const child = spawn('bash', ['-euo', 'pipefail', '-c', script], options)
  const stated: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => stated.push(chunk))
  const closed = once(child, 'close')
  const [status]: unknown[] = await once(child, 'exit')
  try {
    process.kill(-(child.pid ?? Number.NaN), 'SIGKILL')
  } catch {
    // Nothing was left.
  }
  await closed
  rmSync(dir, { recursive: true })
  return { status, stated: Buffer.concat(stated).toString() }
}

test('the commands of the page on the identity broker work as described', async () => {
  const blocks = Array.from(PAGE.matchAll(/```sh\n(.*?)```/gs), ([, lines = '']) => lines)
  assert.equal(blocks.length, 4)
  const { status, stated } = await run(blocks.join('').replaceAll('8081', String(await freePort())))
  assert.equal(status, 0, stated)
  assert.match(
    stated,
    /^\{"iss":"plat-identity","sub":"spiffe:\/\/plat.local\/ns\/team\/agent\/assistant\/session\/s1",/m,
  )
  assert.equal(stated.match(/"valid":true/g)?.length, 2, stated)
  assert.match(stated, /\{"error":"unauthorized"\}/)
  assert.equal(stated.match(/"kty":"OKP"/g)?.length, 2, stated)
  assert.match(stated, /^valid: 2 records/m)
})
