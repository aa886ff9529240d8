import type { ProviderConfig } from '../config.ts'

/** Built-in settings of a provider. Empty texts: not supported. */
export interface Preset {
  /** Display name. */
  readonly title: string
  readonly authorizationURL: string
  readonly tokenURL: string
  /** RFC 7009. */
  readonly revocationURL: string
  /** Additional parameters of the authorization request. */
  readonly authParams: Readonly<Record<string, string>>
}

type PresetParameters = Pick<ProviderConfig, 'name' | 'tenant' | 'domain'>

/** By `preset` (docs/spec/gateway.md, `tokenVault.providers`). */
export const presets: Readonly<Record<ProviderConfig['preset'], (given: PresetParameters) => Preset>> = {
  // Its tokens are revoked on its web pages or by a proprietary API.
  github: () => ({
    title: 'GitHub',
    authorizationURL: 'https://github.com/login/oauth/authorize',
    tokenURL: 'https://github.com/login/oauth/access_token',
    revocationURL: '',
    authParams: {},
  }),
  microsoft: ({ tenant }) => {
    const base = `https://login.microsoftonline.com/${tenant || 'common'}/oauth2/v2.0`
    return {
      title: 'Microsoft',
      authorizationURL: `${base}/authorize`,
      tokenURL: `${base}/token`,
      revocationURL: '',
      authParams: {},
    }
  },
  google: () => ({
    title: 'Google',
    authorizationURL: 'https://accounts.google.com/o/oauth2/v2/auth',
    tokenURL: 'https://oauth2.googleapis.com/token',
    revocationURL: 'https://oauth2.googleapis.com/revoke',
    // Without both, Google returns a refresh token only for the very first consent.
    authParams: { access_type: 'offline', prompt: 'consent' },
  }),
  salesforce: ({ domain }) => {
    const base = `https://${domain || 'login.salesforce.com'}/services/oauth2`
    return {
      title: 'Salesforce',
      authorizationURL: `${base}/authorize`,
      tokenURL: `${base}/token`,
      revocationURL: `${base}/revoke`,
      authParams: {},
    }
  },
  slack: () => ({
    title: 'Slack',
    authorizationURL: 'https://slack.com/oauth/v2_user/authorize',
    tokenURL: 'https://slack.com/api/oauth.v2.user.access',
    revocationURL: '',
    authParams: {},
  }),
  generic: ({ name }) => ({ title: name, authorizationURL: '', tokenURL: '', revocationURL: '', authParams: {} }),
}
