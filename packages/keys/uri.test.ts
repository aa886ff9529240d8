import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keyUriProblem, readKeyUri } from './uri.ts'

const ARN = 'arn:aws:kms:eu-central-1:000000000000:key/1234abcd-12ab-34cd-56ef-1234567890ab'

test('key URIs of every place are parsed', () => {
  assert.deepEqual(readKeyUri('kms://aws/eu-central-1/alias/plat/audit_1'), {
    ...{ kind: 'kms', region: 'eu-central-1', key: 'alias/plat/audit_1' },
  })
  for (const key of ['1234abcd-12ab-34cd-56ef-1234567890ab', 'mrk-1234abcd12ab34cd56ef1234567890ab', ARN])
    assert.deepEqual(readKeyUri(`kms://aws/us-gov-west-1/${key}`), { kind: 'kms', region: 'us-gov-west-1', key })
  const version = '0123456789abcdef0123456789abcdef'
  assert.deepEqual(readKeyUri(`azurekv://prod/audit/${version}`), {
    ...{ kind: 'azurekv', host: 'prod.vault.azure.net', key: 'audit', version },
  })
  assert.deepEqual(readKeyUri('azurekv://hsm-1.managedhsm.usgovcloudapi.net/audit'), {
    ...{ kind: 'azurekv', host: 'hsm-1.managedhsm.usgovcloudapi.net', key: 'audit', version: null },
  })
  const uri =
    'pkcs11:token=my%20token%3b;serial=90d8;object=%c3%a9;id=%01%00%ff?module-path=/m.so&pin-source=file:/etc/p%2fn'
  assert.deepEqual(readKeyUri(uri), {
    kind: 'pkcs11',
    pkcs11: { token: 'my token;', serial: '90d8', object: 'é', id: '0100ff', modulePath: '/m.so', pinFile: '/etc/p/n' },
  })
  assert.deepEqual(readKeyUri('/etc/key.pem'), { kind: 'file', path: '/etc/key.pem' })
})

test('malformed and hostile key URIs are refused in one line, and a PIN is never repeated', () => {
  const refused = [
    ...['', 'kms://aws', 'kms://gcp/eu/x', 'kms://aws/eu-central-1/', 'kms://aws/evil.example/alias/x', 'kms:aws/x'],
    ...['kms://aws/eu-central-1/alias/a?b', 'kms://aws/eu-central-1/alias/a%2f', 'kms://aws/eu-central-1/alias/a\nb'],
    ...[
      'azurekv://a/b',
      'azurekv://vault/../x',
      'azurekv://evil.example/key',
      'azurekv://vault/key/1',
      'azurekv://vault/key/',
    ],
    ...[
      'azurekv://vault.vault.azure.net.evil.example/key',
      'azurekv://u:p@vault.vault.azure.net/key',
      'azurekv://vault/k#x',
    ],
    ...[
      'pkcs11:',
      'pkcs11:token=x',
      'pkcs11:object=a;object=b',
      'pkcs11:object=a?x=1',
      'pkcs11:object=a b',
      'pkcs11:object=%zz',
    ],
    ...[
      'pkcs11:object=%00',
      'pkcs11:object=a%0ab',
      'pkcs11:object=%ff',
      'pkcs11:object=a?pin-source=pin',
      'pkcs11:object=a?b?c',
    ],
    ...['pkcs11:object=a?pin-value=98765', 'pkcs11:pin-value=98765', 'pkcs11:object=', 'ftp://x/y', 'file://host/x'],
  ]
  for (const uri of refused) {
    const problem = keyUriProblem(uri, 'sign')
    assert.ok(problem !== null, uri)
    assert.ok(!problem.includes('98765'), uri)
  }
})

test('a purpose is refused where the place has no such keys', () => {
  for (const purpose of ['Ed25519', 'ML-DSA'] as const) {
    assert.match(keyUriProblem('azurekv://vault/key', purpose) ?? '', /Azure Key Vault has no (Ed25519|ML-DSA) keys/)
    assert.equal(keyUriProblem('kms://aws/eu-central-1/alias/x', purpose), null)
  }
  for (const purpose of ['sign', 'encrypt'] as const) assert.equal(keyUriProblem('azurekv://vault/key', purpose), null)
})
