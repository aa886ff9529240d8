import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { inherited, startGatewayProcess } from '@plat/testkit/gateway'
import { testIssuer } from '@plat/testkit/identity'
import { tempFolder } from '@plat/testkit/local'

const BIN = fileURLToPath(new URL('../../bin/plat-gateway.mjs', import.meta.url))
const SERVERS = { notes: 'http://127.0.0.1:9/mcp' }

/** Log levels of a whole run of a gateway, which gets SIGTERM at its first line. */
async function levels(own: object): Promise<Set<unknown>> {
  const dir = tempFolder()
  const config = {
    listen: '127.0.0.1:0',
    identity: { publicKeyFiles: [join(dir, 'pub.pem')] },
    policyFile: join(dir, 'policies.json'),
    upstreams: SERVERS,
    auditPath: join(dir, 'audit.jsonl'),
    ...own,
  }
  await writeFile(join(dir, 'gateway.json'), JSON.stringify(config))
  const pem = testIssuer().signer.publicKey.key.export({ type: 'spki', format: 'pem' })
  await writeFile(join(dir, 'pub.pem'), pem)
  const child = spawn(process.execPath, [BIN, '-config', join(dir, 'gateway.json')], {
    env: inherited(),
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const ended = once(child, 'close')
  const seen = new Set<unknown>()
  let stopped = false
  for await (const line of createInterface({ input: child.stdout })) {
    seen.add(JSON.parse(line).level)
    // The posture is logged last, when the signal handlers are installed.
    if (!stopped && /posture/.test(line)) stopped = child.kill('SIGTERM')
  }
  await ended
  return seen
}

test('logLevel is the minimum level of the JSON log lines; unknown values mean info', async () => {
  // Shows D3.listen.logLevel.
  for (const [logLevel, telling] of Object.entries({ warn: false, info: true, chatty: true })) {
    const seen = await levels({ logLevel })
    assert.deepEqual([seen.has('warn'), seen.has('info')], [true, telling], logLevel)
  }
})

test('the admin API is open to the token of the environment, and absent without one', async (t) => {
  // Shows D3.load.secret.adminToken.
  const statusWith = async (env: Record<string, string>) => {
    const gateway = await startGatewayProcess({ servers: SERVERS, env })
    t.after(() => gateway.close())
    const headers = { authorization: 'Bearer a-token-of-the-environment' }
    return (await fetch(`${gateway.url}/v1/revocations`, { headers })).status
  }
  assert.equal(await statusWith({ PLAT_ADMIN_TOKEN: 'a-token-of-the-environment' }), 200)
  assert.equal(await statusWith({ PLAT_ADMIN_TOKEN: 'another' }), 401)
  assert.equal(await statusWith({}), 404)
})

test('the admin token comes from a file that the environment names, and never from gateway.json', async (t) => {
  // Shows D3.load.secret.fileVariants, D3.load.secret.neverInFile.
  const file = join(tempFolder(), 'token')
  await writeFile(file, 'a-token-from-a-file\n')
  const gateway = await startGatewayProcess({ servers: SERVERS, env: { PLAT_ADMIN_TOKEN_FILE: file } })
  t.after(() => gateway.close())
  const status = async (token: string) =>
    (await fetch(`${gateway.url}/v1/revocations`, { headers: { authorization: `Bearer ${token}` } })).status
  assert.deepEqual([await status('a-token-from-a-file'), await status('another')], [200, 401])
  for (const key of ['PLAT_ADMIN_TOKEN', 'adminToken', 'PLAT_AUDIT_HMAC_KEY', 'auditHmacKey']) {
    await assert.rejects(
      startGatewayProcess({ servers: SERVERS, config: { [key]: 's3cret-in-a-file' } }),
      (error: Error) => error.message.includes(`${key}: unknown key`) && !error.message.includes('s3cret-in-a-file'),
      key,
    )
  }
})
