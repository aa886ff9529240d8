import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type AlgorithmName, fileKeys } from '@plat/keys'
import { tempFolder } from '@plat/testkit/local'
import { startAzure } from './testing/azure-server.ts'
import { keyConformance } from './testing/conformance.ts'
import { azureEnv, helperEnv, kmsEnv } from './testing/environments.ts'
import { startKms } from './testing/kms-server.ts'
import { servicesOf } from './testing/services.ts'

function pemOf(name: AlgorithmName): string {
  const { privateKey } =
    name === 'EdDSA'
      ? generateKeyPairSync('ed25519')
      : name === 'ES256'
        ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
        : name === 'RS256'
          ? generateKeyPairSync('rsa', { modulusLength: 2048 })
          : generateKeyPairSync('ml-dsa-65')
  return privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()
}

keyConformance('file', async () => {
  const folder = tempFolder()
  const file = async (name: string, text: string) => {
    await writeFile(join(folder, name), text)
    return `file://${join(folder, name)}`
  }
  const of = (name: AlgorithmName) => file(`${name}.pem`, pemOf(name))
  return {
    keys: fileKeys,
    signing: {
      EdDSA: await of('EdDSA'),
      ES256: await of('ES256'),
      RS256: await of('RS256'),
      'ML-DSA-65': await of('ML-DSA-65'),
    },
    another: await file('another.pem', pemOf('EdDSA')),
    encrypting: [await file('a', randomBytes(32).toString('hex')), await file('b', randomBytes(32).toString('base64'))],
    missing: `file://${join(folder, 'none')}`,
  }
})

keyConformance('kms', async (t) => {
  const kms = await startKms(t)
  const uri = (spec: string) => kms.uri(kms.add(spec))
  kms.aliases.set('alias/audit', kms.add('ECC_NIST_P256'))
  return {
    keys: servicesOf(t, kmsEnv(kms.url)),
    signing: {
      ES256: kms.uri('alias/audit'),
      EdDSA: uri('ECC_NIST_EDWARDS25519'),
      RS256: uri('RSA_2048'),
      'ML-DSA-65': uri('ML_DSA_65'),
    },
    another: uri('ECC_NIST_P256'),
    encrypting: [uri('SYMMETRIC_DEFAULT'), uri('SYMMETRIC_DEFAULT')],
    missing: kms.uri('alias/none'),
  }
})

keyConformance('azurekv', async (t) => {
  const azure = await startAzure(t)
  for (const name of ['p256', 'other']) azure.add(name, 'EC')
  for (const name of ['rsa', 'wrap']) azure.add(name, 'RSA')
  azure.add('p384', 'EC-384')
  return {
    keys: servicesOf(t, azureEnv(azure.url)),
    signing: { ES256: azure.uri('p256'), RS256: azure.uri('rsa') },
    another: azure.uri('other'),
    encrypting: [azure.uri('rsa'), azure.uri('wrap')],
    missing: azure.uri('none'),
  }
})

keyConformance('pkcs11', async (t) => ({
  keys: servicesOf(t, await helperEnv()),
  signing: { ES256: 'pkcs11:token=plat;object=p256', EdDSA: 'pkcs11:token=plat;object=ed' },
  another: 'pkcs11:token=plat;object=other',
  encrypting: ['pkcs11:token=plat;object=wrap', 'pkcs11:token=plat;id=wrap2'],
  missing: 'pkcs11:token=plat;object=none',
}))
