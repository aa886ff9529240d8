import type { GuardConfig } from '../config.ts'

/** A guard with defaults. */
export const testGuard: GuardConfig = {
  name: 'g',
  type: 'http-json',
  url: 'https://guard.example/judge',
  model: '',
  apiKeyFile: '',
  on: ['toolResult'],
  namespaces: [],
  servers: [],
  tools: [],
  threshold: 0.5,
  label: 'l',
  action: 'taint',
  timeoutMs: 300,
  failOpen: true,
  maxBytes: 16_384,
  scorePath: 'score',
  category: '',
  positiveIndex: 1,
  region: '',
  jurisdiction: '',
}
