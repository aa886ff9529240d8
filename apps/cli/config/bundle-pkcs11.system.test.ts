import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { isSigned, readBundle } from '@plat/bundle'
import { servicesOf } from '@plat/key-services/testing/services'
import { createSoftHsm } from '@plat/key-services/testing/softhsm'
import { tempFolder } from '@plat/testkit/local'

const ROOT = resolve(import.meta.dirname, '../../..')

test('the package that is published signs with a key of a PKCS#11 token, through the helper inside it', async (t) => {
  const hsm = await createSoftHsm()
  hsm.tool('--keypairgen', '--key-type', 'EC:prime256v1', '--label', 'bundles', '--id', '01')
  const key = `pkcs11:token=plat;object=bundles?module-path=${hsm.modulePath}&pin-source=file:${hsm.pinFile}`
  const dir = tempFolder()
  mkdirSync(join(dir, 'files'))
  writeFileSync(join(dir, 'files/policies.json'), '{}')
  execFileSync(process.execPath, [join(ROOT, 'tools/package/run.ts'), join(dir, 'package')])
  const out = join(dir, 'bundle.tar.gz')
  const flags = ['-revision', '1', '-issuer', 'ops', '-key', key, '-out', out]
  const plat = ['config', 'bundle', join(dir, 'files'), ...flags]
  const run = () =>
    execFileSync(process.execPath, [join(dir, 'package/bin/plat.mjs'), ...plat], { env: hsm.env, stdio: 'pipe' })
  run()
  const bundle = await readBundle(readFileSync(out), 1024 * 1024)
  if ('kind' in bundle) assert.fail(bundle.message)
  const { kid, publicKey } = await servicesOf(t, hsm.env).openSigner(key)
  assert.ok(isSigned(bundle.signatures, { find: (id) => (id === kid ? publicKey : null) }, 'classical'))

  rmSync(join(dir, 'package/dist/app/thread-packages-key-services-pkcs11-adapter.js'))
  assert.throws(run, /the PKCS#11 helper/, 'no other helper was used')
})
