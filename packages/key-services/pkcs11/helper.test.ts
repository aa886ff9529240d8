import assert from 'node:assert/strict'
import { test } from 'node:test'
import { helperEnvironment } from './helper.ts'

test('a helper receives the variables of its module, none of plat but its own, and none that is named like a secret', () => {
  const passed = {
    PATH: '/bin',
    HOME: '/h',
    SOFTHSM2_CONF: '/c',
    PLAT_PKCS11_MODULE: '/m.so',
    PLAT_PKCS11_PIN_FILE: '/p',
  }
  const withheld = { PLAT_LICENSE: 'x', PLAT_ADMIN_TOKEN: 'x', AWS_SECRET_ACCESS_KEY: 'x', AZURE_CLIENT_SECRET: 'x' }
  assert.deepEqual(helperEnvironment({ ...passed, ...withheld, CI_TOKEN: 'x', DB_PASSWORD: 'x', API_KEY: 'x' }), passed)
})
