import type { CloudConfig } from './cloud.ts'

/**
 * The configuration of programs without `cloudCredentials`, such as the broker: all sources, the metadata service of the machine last. As for the SDKs
 * of AWS, `AWS_EC2_METADATA_DISABLED=true` turns that of AWS off.
 */
export function cloudConfigOf(env: NodeJS.ProcessEnv): CloudConfig {
  return {
    aws: {
      region: '',
      imds: env.AWS_EC2_METADATA_DISABLED !== 'true',
      partitionDNSSuffix: '',
      stsEndpoint: env.AWS_ENDPOINT_URL_STS ?? '',
    },
    azure: { managedIdentity: true, identityBinding: Boolean(env.AZURE_KUBERNETES_TOKEN_PROXY) },
    gcp: { metadataHost: '' },
  }
}
