import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { startGatewayProcess } from '@plat/testkit/gateway'
import { startTestIdentity } from '@plat/testkit/identity'
import { freePort } from '@plat/testkit/local'

const ROOT = path.resolve(import.meta.dirname, '../..')
const SCRIPT = 'deploy/chart/reachable.mjs'

/** The script of `helm test`, with the addresses from the chart. */
async function reach(env: Readonly<Record<string, string>>): Promise<{ status: unknown; out: string; err: string }> {
  const child = spawn(process.execPath, [path.join(ROOT, SCRIPT)], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const [[status], out, err] = await Promise.all([once(child, 'exit'), text(child.stdout), text(child.stderr)])
  return { status, out, err }
}

test('the check that helm test runs passes with a broker and a gateway, and fails without one of them', async (t) => {
  const broker = await startTestIdentity()
  t.after(() => broker.stop())
  const gateway = await startGatewayProcess({ servers: {} })
  t.after(() => gateway.close())
  const env = { PLAT_GATEWAY_URL: gateway.url, PLAT_IDENTITY_URL: broker.url }
  const passed = await reach(env)
  assert.equal(passed.status, 0, passed.err)
  assert.deepEqual(passed.out.trim().split('\n'), [
    'ok the broker is ready',
    'ok the broker publishes a key',
    'ok the gateway is ready',
    'ok the gateway requires a token',
  ])
  const unreachable = `http://127.0.0.1:${await freePort()}`
  assert.notEqual((await reach({ ...env, PLAT_GATEWAY_URL: unreachable })).status, 0)
  // A broker answers on these paths too, but it is not a gateway.
  assert.notEqual((await reach({ ...env, PLAT_GATEWAY_URL: broker.url })).status, 0)
})

test('the image has the script, the binaries and the user that the chart names', () => {
  const dockerfile = readFileSync(path.join(ROOT, 'deploy/Dockerfile'), 'utf8')
  const template = (name: string) => readFileSync(path.join(ROOT, 'deploy/chart/templates', name), 'utf8')
  const [, folder = ''] = /^COPY --from=tree (\S+) \1$/m.exec(dockerfile) ?? []
  assert.ok(template('tests/reachable.yaml').includes(`${folder}/${SCRIPT}`))
  assert.ok(dockerfile.includes(`PATH=${folder}/node_modules/.bin:$PATH`))
  const [, user] = /^USER (\d+):\d+$/m.exec(dockerfile) ?? []
  assert.ok(template('_pods.tpl').includes(`runAsUser: ${user}\n`))
  for (const name of ['identity/deployment', 'gateway/statefulset', 'operator/deployment']) {
    const [, command = ''] = /command: \[([^\]]+)\]/.exec(template(`${name}.yaml`)) ?? []
    const service = command.replace(/^plat-/, '')
    const { bin } = JSON.parse(readFileSync(path.join(ROOT, 'services', service, 'package.json'), 'utf8'))
    assert.ok(Object.hasOwn(bin, command), command)
  }
})
