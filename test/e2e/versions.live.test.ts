import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { startUp } from '@plat/cli'
import { tempFolder } from '@plat/testkit/local'

test('broker and gateway report their build, in the gauge and in /version', async (t) => {
  // Shows D1.versioning.buildInfoEverywhere.
  const dir = tempFolder()
  await mkdir(path.join(dir, 'resources'))
  const up = await startUp({ dir, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' })
  t.after(() => up.stop())
  const services = { identity: up.env.PLAT_IDENTITY_URL, gateway: up.env.PLAT_GATEWAY_URL }
  const versions: unknown[] = []
  for (const [component, url] of Object.entries(services)) {
    const { version, commit, goVersion } = Object(await (await fetch(`${url}/version`)).json())
    const metrics = await (await fetch(`${url}/metrics`)).text()
    const gauge = `plat_build_info{component="${component}",version="${version}",commit="${commit}",goversion="${goVersion}"`
    assert.ok(metrics.includes(gauge), `${component}: ${gauge}`)
    versions.push(version)
  }
  assert.equal(versions[0], versions[1])
})
