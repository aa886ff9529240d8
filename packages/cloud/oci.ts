import { createPrivateKey } from 'node:crypto'
import os from 'node:os'
import path from 'node:path'
import { readText } from '@plat/config'
import type { OciKey } from '@plat/http'
import { CloudCredentialError, type CloudParts, type Expiring, MAX_FILE_BYTES } from './cloud.ts'

/** Lifetime of a key read from files, in milliseconds: then they are read again, since keys are rotated. */
const READ_AGAIN_MS = 15 * 60_000

/** Signing key for Oracle Cloud, and the tenancy that pays by default. */
export interface OciIdentity extends OciKey {
  readonly tenancy: string
}

/**
 * Reads a signing key of Oracle Cloud from the first source in the environment: `OCI_CLI_USER`, `OCI_CLI_TENANCY`, `OCI_CLI_FINGERPRINT` and
 * `OCI_CLI_KEY_FILE`, else the profile `OCI_CLI_PROFILE` (`DEFAULT`) of `OCI_CLI_CONFIG_FILE` (`~/.oci/config`). Throws `CloudCredentialError`.
 */
export async function ociIdentity({ env, clock }: CloudParts): Promise<Expiring<OciIdentity>> {
  const settings = env.OCI_CLI_KEY_FILE ? ofEnvironment(env) : await ofProfile(env)
  const { user, tenancy, fingerprint, key_file: file, pass_phrase: passphrase } = settings
  if (!user || !tenancy || !fingerprint || !file)
    throw new CloudCredentialError('OCI: user, tenancy, fingerprint and key_file are required')
  const pem = await readText(atHome(file, env), MAX_FILE_BYTES)
  if (pem === null) throw new CloudCredentialError('OCI: key_file cannot be read')
  const privateKey = keyOf(pem, passphrase)
  return {
    value: { keyId: `${tenancy}/${user}/${fingerprint}`, privateKey, tenancy },
    expiresAt: clock.now() + READ_AGAIN_MS,
  }
}

type Settings = Readonly<Record<string, string | undefined>>

function ofEnvironment(env: NodeJS.ProcessEnv): Settings {
  return {
    user: env.OCI_CLI_USER,
    tenancy: env.OCI_CLI_TENANCY,
    fingerprint: env.OCI_CLI_FINGERPRINT,
    key_file: env.OCI_CLI_KEY_FILE,
    pass_phrase: env.OCI_CLI_PASSPHRASE,
  }
}

async function ofProfile(env: NodeJS.ProcessEnv): Promise<Settings> {
  const file = atHome(env.OCI_CLI_CONFIG_FILE || env.OCI_CONFIG_FILE || '~/.oci/config', env)
  const profile = env.OCI_CLI_PROFILE || 'DEFAULT'
  const text = await readText(file, MAX_FILE_BYTES)
  if (text === null)
    throw new CloudCredentialError(
      'OCI: set OCI_CLI_KEY_FILE and the like, or OCI_CLI_CONFIG_FILE: the file cannot be read',
    )
  // A profile inherits from `DEFAULT`.
  const [usual, own]: [Record<string, string>, Record<string, string>] = [{}, {}]
  let section = ''
  for (const line of text.split('\n').map((line) => line.trim())) {
    const [, named] = /^\[([^\]]+)\]$/.exec(line) ?? []
    section = named ?? section
    const [, name = '', value = ''] = /^([a-z_]+)\s*=(.*)$/.exec(line) ?? []
    if (name === '') continue
    if (section === 'DEFAULT') usual[name] = value.trim()
    if (section === profile) own[name] = value.trim()
  }
  if (Object.keys(own).length === 0) throw new CloudCredentialError(`OCI: the config file has no profile ${profile}`)
  return { ...usual, ...own }
}

function atHome(file: string, env: NodeJS.ProcessEnv): string {
  return file.startsWith('~/') ? path.join(env.HOME || os.homedir(), file.slice(2)) : file
}

function keyOf(pem: string, passphrase: string | undefined) {
  try {
    return createPrivateKey(passphrase ? { key: pem, passphrase } : pem)
  } catch {
    // The error could contain parts of the key.
    throw new CloudCredentialError('OCI: key_file holds no private key that can be read')
  }
}
