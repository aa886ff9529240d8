import type { AwsCredentials } from '@plat/http'
import { awsCredentials } from './aws.ts'
import { type AzureService, azureToken } from './azure.ts'
import { CachedCredential } from './cached-credential.ts'
import { type CloudConfig, CloudCredentialError, type CloudParts, regional } from './cloud.ts'
import { gcpToken } from './gcp.ts'

/**
 * Cloud credentials for features other than models (docs/spec/gateway.md, `cloudCredentials`). A cloud is queried at the first use, which
 * waits; from then on the credentials are renewed ahead of time. Rejects without credentials.
 */
export interface CloudCredentials {
  aws(): Promise<AwsCredentials>
  /** Returns a token for a service of Azure; default: the ingestion of logs by Azure Monitor. */
  azure(service?: AzureService): Promise<string>
  gcp(): Promise<string>
  close(): void
}

/** Sends no request before the first use. */
export function createCloudCredentials(
  options: Omit<CloudParts, 'config'> & { readonly config: { readonly cloudCredentials: CloudConfig } },
): CloudCredentials {
  const parts = { ...options, config: regional(options.config.cloudCredentials, options.env) }
  const { clock, log } = parts
  const aws = new CachedCredential({ name: 'aws', clock, log, lend: () => awsCredentials(parts) })
  const azure = new Map<AzureService, CachedCredential<string>>()
  const azureFor = (service: AzureService) => {
    const cached =
      azure.get(service) ?? new CachedCredential({ name: 'azure', clock, log, lend: () => azureToken(parts, service) })
    azure.set(service, cached)
    return cached
  }
  const gcp = new CachedCredential({ name: 'gcp', clock, log, lend: () => gcpToken(parts) })
  return {
    aws: () => borrowed(aws, 'AWS'),
    azure: (service = 'monitor') => borrowed(azureFor(service), 'Azure'),
    gcp: () => borrowed(gcp, 'Google Cloud'),
    close() {
      for (const one of [aws, gcp, ...azure.values()]) one.close()
    },
  }
}

async function borrowed<T>(cached: CachedCredential<T>, cloud: string): Promise<T> {
  await cached.start()
  if (cached.current === null)
    throw new CloudCredentialError(`cloudCredentials: none of ${cloud} now; the log says why`)
  return cached.current
}
