import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { tempFolder } from '@plat/testkit/local'
import { CREDENTIALS } from './kms-server.ts'

/** Endpoint and credentials for a KMS at `url`. */
export const kmsEnv = (url: string): Record<string, string> => ({
  AWS_ENDPOINT_URL_KMS: url,
  AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
  AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
})

/** Endpoint and credentials for a Key Vault at `url`. */
export function azureEnv(url: string): NodeJS.ProcessEnv {
  return {
    PLAT_AZUREKV_ENDPOINT: url,
    AZURE_AUTHORITY_HOST: url,
    AZURE_TENANT_ID: 't',
    AZURE_CLIENT_ID: 'c',
    AZURE_CLIENT_SECRET: 's',
  }
}

/** Starts the helper of the tests as another program, as `PLAT_PKCS11_HELPER` names one. */
export async function helperEnv(): Promise<NodeJS.ProcessEnv> {
  const program = join(tempFolder(), 'helper')
  const file = fileURLToPath(new URL('./helper.ts', import.meta.url))
  await writeFile(program, `#!/bin/sh\nexec '${process.execPath}' '${file}'\n`)
  await chmod(program, 0o700)
  return { ...process.env, PLAT_PKCS11_HELPER: program }
}
