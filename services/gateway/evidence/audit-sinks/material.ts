import { join } from 'node:path'
import { headerLines, readText } from '@plat/config'
import type { AwsCredentials, DialOptions } from '@plat/http'
import type { SinkConfig } from './config.ts'

/** Maximum file size, in bytes; CA bundles are the largest. */
const MAX_FILE_BYTES = 1024 * 1024
/** A bearer token (RFC 6750): visible ASCII without spaces. */
const TOKEN = /^[\x21-\x7e]+$/

/** A file needed for a delivery cannot be used; the message names key and file and quotes nothing of it. */
export class UnusableMaterialError extends Error {}

/** Names of these files; empty for none. */
export type MaterialFiles = Pick<
  SinkConfig,
  'caFile' | 'certFile' | 'keyFile' | 'serverName' | 'tokenFile' | 'headersFile' | 'awsCredentialsDir'
>

/** Files of one sink. They are read for each delivery: a rotated file applies at once, and a missing one fails the delivery. */
export class Material {
  readonly #config: MaterialFiles
  /** The dialer pools connections by the identity of this object. */
  #trust: { readonly from: string; readonly options: DialOptions } | null = null

  constructor(config: MaterialFiles) {
    this.#config = config
  }

  /** TLS trust roots and client certificate. */
  async trust(): Promise<DialOptions> {
    const { caFile, certFile, keyFile, serverName } = this.#config
    const caPEM = caFile === '' ? undefined : await this.#file('caFile', caFile)
    const certPEM = certFile === '' ? undefined : await this.#file('certFile', certFile)
    const keyPEM = keyFile === '' ? undefined : await this.#file('keyFile', keyFile)
    const from = JSON.stringify([caPEM, certPEM, keyPEM])
    if (this.#trust?.from !== from) {
      const options = {
        ...(caPEM !== undefined && { caPEM }),
        ...(certPEM !== undefined && keyPEM !== undefined && { clientCert: { certPEM, keyPEM } }),
        ...(serverName !== '' && { serverName }),
      }
      this.#trust = { from, options }
    }
    return this.#trust.options
  }

  /** Returns null if none is configured. */
  async token(): Promise<string | null> {
    const { tokenFile } = this.#config
    if (tokenFile === '') return null
    const token = await this.#file('tokenFile', tokenFile)
    if (!TOKEN.test(token)) throw new UnusableMaterialError(`tokenFile: ${tokenFile} holds no valid bearer token`)
    return token
  }

  /** Names are in lower case. */
  async headers(): Promise<Readonly<Record<string, string>>> {
    const { headersFile } = this.#config
    if (headersFile === '') return {}
    const headers = headerLines(await this.#file('headersFile', headersFile))
    if (typeof headers === 'object') return headers
    throw new UnusableMaterialError(`headersFile: line ${headers} of ${headersFile} is not an allowed "Name: value"`)
  }

  async aws(): Promise<AwsCredentials> {
    const { awsCredentialsDir: dir } = this.#config
    const file = (name: string) => this.#file('awsCredentialsDir', join(dir, name))
    const sessionToken = (await readText(join(dir, 'session-token'), MAX_FILE_BYTES))?.trim() || null
    return {
      accessKeyId: await file('access-key-id'),
      secretAccessKey: await file('secret-access-key'),
      sessionToken,
    }
  }

  async #file(key: string, path: string): Promise<string> {
    const text = (await readText(path, MAX_FILE_BYTES))?.trim() ?? ''
    if (text === '')
      throw new UnusableMaterialError(
        `${key}: ${path} is missing, unreadable, empty or larger than ${MAX_FILE_BYTES} bytes`,
      )
    return text
  }
}
