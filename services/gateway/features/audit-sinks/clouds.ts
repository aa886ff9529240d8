import { type AwsCredentials, awsCredentialsOf } from '@plat/http'

/** `cloudCredentials` (document 3), as far as sinks need them. Rejects where there are none. */
export interface Clouds {
  aws(): Promise<AwsCredentials>
}

/** What the environment holds. */
export function environmentClouds(env: NodeJS.ProcessEnv): Clouds {
  return {
    async aws() {
      const credentials = awsCredentialsOf(env)
      if (credentials === null) throw new Error('credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set')
      return credentials
    },
  }
}
