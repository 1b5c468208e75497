# Makes the tree of an area in the current directory: a home with a project in it, and a directory outside.
set -e
mkdir -p home/project outside/dir outside/empty outside/fixed outside/closed-dir outside/others-dir
cd home
mkdir -p .ssh .aws .gnupg .config/app .config/gh .cargo/registry/src .cargo/bin .kube .docker .local/share/app \
    .local/bin .mozilla/firefox other-project .vscode .npm .password-store .config/gcloud .azure .cache/app
for file in .ssh/id_rsa .ssh/config .ssh/known_hosts .aws/credentials .netrc .bashrc .profile .bash_history .gitconfig \
    .npmrc .pypirc .gnupg/secring.gpg .config/app/settings .config/gh/hosts.yml .kube/config .docker/config.json \
    .local/share/app/data .mozilla/firefox/logins.json other-project/.env other-project/main.c notes.txt .pgpass \
    .cargo/credentials.toml .cargo/registry/src/lib.rs .git-credentials .vault-token .password-store/bank.gpg \
    .config/gcloud/credentials.db .azure/accessTokens.json .cache/app/index .zsh_history .env; do
    echo "kept" >"$file"
done
printf '[user]\n\tname = Tester\n\temail = tester@example.org\n' >.gitconfig
printf 'fund=false\n' >.npmrc
printf '# nothing\n' >.bashrc
chmod 700 .ssh .gnupg
chmod 600 .ssh/id_rsa .netrc .pgpass
cd ../outside
echo kept >kept
echo kept >dir/inner
echo kept >"odd name"
echo kept >others
echo kept >closed
echo kept >read-only
echo kept >fixed/file
echo kept >closed-dir/inner
printf '#!/bin/sh\necho ran\n' >run.sh
printf '#!/bin/sh\necho lib\n' >lib.sh
cp /bin/true tool
chmod 755 run.sh tool
ln -s kept link
cd ../home/project
cp "$HERE/act" act
chmod 755 act
git init -q -b main .
echo readme >readme
echo 'int main(void) { return 0; }' >main.c
printf 'all:\n\t@echo made\n' >Makefile
mkdir -p sub .idea
echo b >sub/file
printf 'b\na\nc\n' >lines
printf '{"a": [1, 2]}\n' >data.json
ln -s ../../outside/kept link-kept
ln -s ../../outside/dir link-dir
ln -s ../../outside/tool link-tool
ln -s ../../outside/run.sh link-run
printf '#!%s/outside/tool\n' "$(cd ../../.. && pwd)" >by-outside
printf '#!/bin/sh\necho here\n' >script
chmod 755 by-outside script
printf '{"description": "no files", "extends": "workspace", "paths": {"deny": ["${WORKSPACE}/sub"]}}\n' >denying.json
printf '{"description": "reads", "extends": "minimal", "paths": {"write": ["${WORKSPACE}"]}}\n' >writing.json
git add -A
git -c user.name=t -c user.email=t@example.org commit -q -m first
