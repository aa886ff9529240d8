import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ephemeralSigner } from '@plat/keys'
import { LICENSE_STATES, readAuthority, readLicense, standingOf } from '@plat/license'
import { isFault, signJws } from '@plat/tokens'
import { parse } from 'yaml'
import { configWith, examples } from '../../testing/configured.ts'

test('the examples of docs/license.md are valid, and the chart mounts the license where both look for it', () => {
  const [text] = examples('license.md', 'json')
  assert.equal(configWith(JSON.parse(text)).licenseFile, '/etc/plat/license.jws')
  const { gateway, operator } = parse(examples('license.md', 'yaml')[0])
  const file = configWith(gateway.config).licenseFile
  assert.equal(operator.flags['license-file'], file)
  for (const { extraVolumeMounts } of [gateway, operator]) {
    assert.ok(file.startsWith(`${extraVolumeMounts[0].mountPath}/`))
  }
})

test('a license with the claims of docs/license.md is valid, and one without a required claim is not', () => {
  const signer = ephemeralSigner()
  const authority = readAuthority(JSON.stringify(signer.publicJwk), 'test')
  const claims = { jti: '1', sub: 'Example Ltd', edition: 'team', nbf: 10, exp: 20 }
  const read = (more: object) =>
    readLicense(signJws(signer, { typ: 'plat-license+jws' }, { ...claims, ...more }), authority)
  assert.equal(standingOf(read({}), 15_000).state, 'valid')
  for (const name of Object.keys(claims)) assert.ok(isFault(read({ [name]: undefined })), name)
  const times: readonly (readonly [number, string])[] = [
    [5, 'invalid'],
    [15, 'valid'],
    [25, 'expired'],
  ]
  for (const [seconds, state] of times) assert.equal(standingOf(read({}), seconds * 1000).state, state)
  assert.deepEqual(LICENSE_STATES, ['none', 'invalid', 'valid', 'grace', 'expired'])
})
