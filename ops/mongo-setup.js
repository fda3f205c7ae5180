// For mongosh, on the machine of a member: founds the replica set and makes its users. Any number of times.
// MEMBERS: host:port,host:port. MongoDB lets whoever is on its machine make the first user, and nobody anything after.
const { MEMBERS, MONGODB_ADMIN_PASSWORD, MONGODB_PASSWORD } = process.env;
const admin = db.getSiblingDB('admin');

function isKnown() {
  try {
    return admin.auth('admin', MONGODB_ADMIN_PASSWORD).ok === 1;
  } catch (error) {
    if (error.codeName !== 'AuthenticationFailed') throw error;
    return false;
  }
}

if (!isKnown()) {
  const members = MEMBERS.split(',').map((host, _id) => ({ _id, host }));
  try {
    rs.initiate({ _id: 'rs0', members });
  } catch (error) {
    if (error.codeName !== 'AlreadyInitialized') throw error;
  }
  while (!db.hello().isWritablePrimary) sleep(200);
  admin.createUser({ user: 'admin', pwd: MONGODB_ADMIN_PASSWORD, roles: ['root'] });
  admin.auth('admin', MONGODB_ADMIN_PASSWORD);
}
if (!admin.getUser('kusanya')) {
  const roles = ['readWrite', 'dbAdmin'].map((role) => ({ role, db: 'kusanya' }));
  admin.createUser({ user: 'kusanya', pwd: MONGODB_PASSWORD, roles });
}
