import type { RestCaller } from '../rest.ts'

/** `kubectl auth whoami`. */
export function selfReview({ name, groups }: RestCaller): object {
  const userInfo = { username: name, groups }
  return { kind: 'SelfSubjectReview', apiVersion: 'authentication.k8s.io/v1', metadata: {}, status: { userInfo } }
}
