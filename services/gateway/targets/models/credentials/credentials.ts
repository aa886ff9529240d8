import {
  awsCredentials,
  azureToken,
  CachedCredential,
  type CloudParts,
  gcpToken,
  type OciIdentity,
  ociIdentity,
} from '@plat/cloud'
import { type AwsCredentials, signAws, signOci } from '@plat/http'
import type { RouteEndpoint } from '../endpoint.ts'
import { KeyFiles } from './keys.ts'
import { type AwsSigning, type Cloud, type CredentialSource, cloudOf, filesOf } from './source.ts'

/** Parts of a request for its signature. */
export interface RequestToSign {
  readonly origin: string
  /** Path and query. */
  readonly path: string
  readonly method: string
  readonly body: Uint8Array | null
  /** Milliseconds since the epoch. */
  readonly at: number
}

type Headers = Readonly<Record<string, string>>

const NOTHING: Headers = {}

/**
 * Credentials of endpoints: keys and tokens from files and variables, and those lent by clouds (docs/spec/gateway.md,
 * `auth` and `cloudCredentials`). All are fetched before calls need them; no call waits.
 */
export class EndpointCredentials {
  readonly #keys: KeyFiles
  readonly #clouds: {
    readonly aws: CachedCredential<AwsCredentials>
    readonly oci: CachedCredential<OciIdentity>
  } & Readonly<Record<'gcp' | 'azure', CachedCredential<string>>>

  constructor(parts: CloudParts) {
    const { clock, log, env } = parts
    this.#keys = new KeyFiles(log, env)
    this.#clouds = {
      aws: new CachedCredential({ name: 'aws', clock, log, lend: () => awsCredentials(parts) }),
      gcp: new CachedCredential({ name: 'gcp', clock, log, lend: () => gcpToken(parts) }),
      azure: new CachedCredential({ name: 'azure', clock, log, lend: () => azureToken(parts, 'cognitiveservices') }),
      oci: new CachedCredential({ name: 'oci', clock, log, lend: () => ociIdentity(parts) }),
    }
  }

  isReady({ credential }: RouteEndpoint): boolean {
    switch (credential.kind) {
      case 'none':
        return true
      case 'key':
        return this.#keys.key(credential.source) !== null
      case 'aws-keys':
        return this.#ofFiles(credential) !== null
      default:
        return this.#clouds[credential.kind].current !== null
    }
  }

  /** Also empty if the credential is missing: callers check `isReady` first. */
  headers({ credential, wire }: RouteEndpoint, request: RequestToSign): Headers {
    switch (credential.kind) {
      case 'none':
        return NOTHING
      case 'key':
        return keyHeader(wire.keyHeader, this.#keys.key(credential.source))
      case 'aws-keys':
        return awsHeaders(this.#ofFiles(credential), credential.signing, request)
      case 'aws':
        return awsHeaders(this.#clouds.aws.current, credential.signing, request)
      case 'oci':
        return ociHeaders(this.#clouds.oci.current, credential.project, request)
      default:
        return keyHeader(BEARER, this.#clouds[credential.kind].current)
    }
  }

  /** Reads the files and queries the clouds of these endpoints; resolves after all first results, including failures. */
  async follow(endpoints: readonly Pick<RouteEndpoint, 'credential'>[]): Promise<void> {
    const clouds = new Set(endpoints.map(({ credential }) => cloudOf(credential)).filter((one) => one !== null))
    await Promise.all([
      this.#keys.follow(new Set(endpoints.flatMap(({ credential }) => filesOf(credential)))),
      ...[...clouds].map((cloud: Cloud) => this.#clouds[cloud].start()),
    ])
  }

  /** Reloads the files. */
  async refresh(): Promise<void> {
    await this.#keys.refresh()
  }

  close(): void {
    for (const cloud of Object.values(this.#clouds)) cloud.close()
  }

  #ofFiles({ id, secret, session }: Extract<CredentialSource, { kind: 'aws-keys' }>): AwsCredentials | null {
    const [accessKeyId, secretAccessKey] = [this.#keys.key(id), this.#keys.key(secret)]
    if (accessKeyId === null || secretAccessKey === null) return null
    return { accessKeyId, secretAccessKey, sessionToken: this.#keys.key(session) }
  }
}

const BEARER = ['authorization', 'Bearer '] as const

function keyHeader([name, prefix]: readonly [string, string], key: string | null): Headers {
  return key === null ? NOTHING : { [name]: prefix + key }
}

function awsHeaders(credentials: AwsCredentials | null, signing: AwsSigning, request: RequestToSign): Headers {
  if (credentials === null) return NOTHING
  const { method, origin, path, body, at } = request
  const url = new URL(origin + path)
  return signAws({ method, url, body: Buffer.from(body ?? []).toString('utf8'), at, ...signing }, credentials)
}

/** `project`: a compartment or project; by default the tenancy pays. */
function ociHeaders(identity: OciIdentity | null, project: string, request: RequestToSign): Headers {
  if (identity === null) return NOTHING
  const { method, origin, path, body, at } = request
  const isProject = project !== '' && !/^ocid1\.(?:compartment|tenancy)\./.test(project)
  return {
    ...signOci({ method, url: new URL(origin + path), body, at }, identity),
    'opc-compartment-id': isProject || project === '' ? identity.tenancy : project,
    ...(isProject && { 'openai-project': project }),
  }
}
