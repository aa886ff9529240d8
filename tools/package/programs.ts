/** The programs of plat: the name of each in a bundle, and its module with `main`. */
export const PROGRAMS = {
  plat: 'apps/cli/main.ts',
  'plat-gateway': 'services/gateway/main.ts',
  'plat-identity': 'services/identity/main.ts',
  'plat-operator': 'services/operator/main.ts',
  'plat-attestation': 'services/attestation/main.ts',
} as const
