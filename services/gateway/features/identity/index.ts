export {
  type Authenticator,
  type AuthenticatorConfig,
  type AuthenticatorOptions,
  type AuthMetrics,
  createAuthenticator,
} from './authenticate.ts'
